use std::fs;

use proptest::prelude::*;

use super::*;
use crate::tls::testing::SESSION;

const HOUR: Duration = Duration::from_secs(3600);
const NOW: u64 = 1_800_000_000;

fn ticketer(keys: &[Arc<TicketKey>]) -> Ticketer {
    Ticketer::new(keys.to_vec(), HOUR, [7; 32])
}

fn refused<T>(verdict: OfferedSession) -> Result<T, Refused> {
    Err(Refused::Because(verdict))
}

fn random() -> Arc<TicketKey> {
    Arc::new(TicketKey::random().unwrap())
}

/// Different bytes for each seed.
fn file_key(seed: u8) -> Vec<u8> {
    (0..FILE_KEY_BYTES as u8).map(|i| i.wrapping_mul(31).wrapping_add(seed) | 0x80).collect()
}

#[test]
fn a_ticket_opens_under_any_of_the_keys_and_no_other() {
    let (old, new) = (random(), random());
    let sealed = ticketer(&[Arc::clone(&old)]).seal(SESSION, NOW).unwrap();
    assert_eq!(ticketer(&[Arc::clone(&new), old]).open(&sealed, NOW).unwrap().session, SESSION);
    assert_eq!(ticketer(&[new]).open(&sealed, NOW), refused(OfferedSession::UnknownKey));
}

#[test]
fn a_ticket_does_not_outlive_its_lifetime_nor_its_binding() {
    let key = random();
    let own = ticketer(&[Arc::clone(&key)]);
    let sealed = own.seal(SESSION, NOW).unwrap();
    assert_eq!(own.open(&sealed, NOW + 3600).unwrap().age, HOUR);
    let age = Duration::from_secs(3601);
    assert_eq!(own.open(&sealed, NOW + 3601), refused(OfferedSession::Expired { age }));
    let opened = own.open(&sealed, NOW - 60).unwrap();
    assert_eq!(opened.age, Duration::ZERO, "the clock of who sealed it was ahead");
    assert_eq!(own.open(&sealed, NOW - 61), refused(OfferedSession::Expired { age: Duration::ZERO }));
    let other = Ticketer::new(vec![key], HOUR, [8; 32]);
    assert_eq!(other.open(&sealed, NOW), refused(OfferedSession::ClientAuth));
    assert_eq!(other.open(&sealed, NOW + 7200), refused(OfferedSession::ClientAuth), "it never opens");
}

proptest! {
    #[test]
    fn what_is_not_a_ticket_of_ours_does_not_open(
        garbage in prop::collection::vec(any::<u8>(), 0..200),
        at in 0..60_usize,
        flip in 1..=255_u8,
    ) {
        let key = random();
        let own = ticketer(&[key]);
        prop_assert!(own.open(&garbage, NOW).is_err());
        let mut sealed = own.seal(SESSION, NOW).unwrap();
        prop_assert_eq!(own.open(&sealed[..sealed.len() - 1], NOW), refused(OfferedSession::Damaged));
        let at = at % sealed.len();
        sealed[at] ^= flip;
        let verdict = if at < NAME_BYTES { OfferedSession::UnknownKey } else { OfferedSession::Damaged };
        prop_assert_eq!(own.open(&sealed, NOW), refused(verdict));
    }
}

#[test]
fn own_keys_seal_for_a_rotation_and_open_for_a_lifetime_more() {
    let begin = Instant::now();
    let mut keys = RotatingTicketKeys::new(begin).unwrap();
    let at = |hours: u32| begin + HOUR * hours;
    let first = keys.keys()[0].name;
    let mut rotate =
        |hours| keys.rotate(at(hours), HOUR * 6, HOUR * 12).map(|changed| (changed, keys.keys()));
    assert!(!rotate(5).unwrap().0);
    // The key seals for six hours, so its last ticket is valid until hour eighteen.
    for (hours, count) in [(6, 2), (12, 3), (18, 4)] {
        let (changed, keys) = rotate(hours).unwrap();
        assert!(changed && keys.len() == count, "{hours}");
        assert_eq!(keys.last().unwrap().name, first);
        assert_ne!(keys[0].name, first);
    }
    let (changed, keys) = rotate(19).unwrap();
    assert!(changed && keys.iter().all(|key| key.name != first), "it is forgotten");
}

#[test]
fn an_added_key_seals_and_begins_its_own_rotation() {
    let begin = Instant::now();
    let mut keys = RotatingTicketKeys::new(begin).unwrap();
    let first = keys.keys()[0].name;
    keys.add(begin + HOUR * 5).unwrap();
    let names: Vec<_> = keys.keys().iter().map(|key| key.name).collect();
    assert!(names.len() == 2 && names[0] != first && names[1] == first);
    assert!(!keys.rotate(begin + HOUR * 6, HOUR * 6, HOUR * 12).unwrap());
    assert!(keys.rotate(begin + HOUR * 11, HOUR * 6, HOUR * 12).unwrap());
}

#[test]
fn a_file_of_keys_is_shared_by_content_and_its_first_key_seals() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("old"), file_key(1)).unwrap();
    fs::write(at("new"), [file_key(2), file_key(1)].concat()).unwrap();
    let keys = |name: &str| TicketKeyFile::load(&at(name)).unwrap().keys();
    let sealed = ticketer(&keys("old")).seal(SESSION, NOW).unwrap();
    assert_eq!(ticketer(&keys("new")).open(&sealed, NOW).unwrap().session, SESSION);
    let sealed = ticketer(&keys("new")).seal(SESSION, NOW).unwrap();
    assert_eq!(ticketer(&keys("old")).open(&sealed, NOW), refused(OfferedSession::UnknownKey));
    assert_eq!(sealed[..16], file_key(2)[..16]);
}

#[test]
fn files_that_are_no_keys_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys");
    for (bytes, part) in [
        (vec![], "empty"),
        (file_key(1)[..48].to_vec(), "80 random bytes"),
        ([file_key(1), vec![200]].concat(), "80 random bytes"),
        // Base64, as in HAProxy.
        (b"A".repeat(160), "80 random bytes"),
        (vec![0xff; 80], "not random"),
        ([file_key(1), file_key(1)].concat(), "same name"),
        ((0..17).flat_map(file_key).collect(), "17 keys"),
    ] {
        fs::write(&path, &bytes).unwrap();
        let text = TicketKeyFile::load(&path).unwrap_err().to_string();
        assert!(text.contains(part) && text.contains(path.to_str().unwrap()), "{text}");
    }
}

#[test]
fn keys_never_show() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys");
    fs::write(&path, file_key(1)).unwrap();
    let file = TicketKeyFile::load(&path).unwrap();
    let secret = u32::from_be_bytes(*file_key(1)[NAME_BYTES..].first_chunk().unwrap());
    let secret = format!("{secret:08x}");
    let secret_list = format!("{:?}", &file_key(1)[NAME_BYTES..NAME_BYTES + 4]);
    let own = RotatingTicketKeys::new(Instant::now()).unwrap();
    for text in
        [format!("{file:?}"), file.summary(), format!("{:?}", ticketer(&file.keys())), format!("{own:?}")]
    {
        assert!(!text.contains(&secret) && !text.contains(secret_list.trim_matches(['[', ']'])), "{text}");
    }
    assert_eq!(format!("{:?}", file.keys), "[TicketKey { .. }]");
}
