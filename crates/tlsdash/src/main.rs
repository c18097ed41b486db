//! The program `tlsdash`.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    tlsdash::main()
}
