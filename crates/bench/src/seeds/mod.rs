//! The scenarios that come with the program: experiments that others published, as one command each.

/// A scenario that comes with the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed {
    /// Its name, such as `seed:002`.
    pub name: &'static str,
    pub text: &'static str,
}

const SEEDS: [Seed; 5] = [
    Seed { name: "seed:000", text: include_str!("000.toml") },
    Seed { name: "seed:001", text: include_str!("001.toml") },
    Seed { name: "seed:002", text: include_str!("002.toml") },
    Seed { name: "seed:003", text: include_str!("003.toml") },
    Seed { name: "seed:004", text: include_str!("004.toml") },
];

impl Seed {
    pub fn all() -> &'static [Self] {
        &SEEDS
    }

    pub fn named(name: &str) -> Option<&'static Self> {
        SEEDS.iter().find(|seed| seed.name == name)
    }
}
