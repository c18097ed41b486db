//! Passes secrets to another process, in sealed memory without a name in any file system (`memfd_create(2)`,
//! `F_ADD_SEALS`).

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, memfd_create};
use zeroize::Zeroizing;

fn seals() -> SealFlags {
    SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL
}

/// Memory with these bytes, sealed.
///
/// # Errors
/// If the kernel refuses.
pub(super) fn seal(bytes: &[u8]) -> io::Result<OwnedFd> {
    let memory = memfd_create("tlsdash-tickets", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    let mut file = File::from(memory);
    file.write_all(bytes)?;
    fcntl_add_seals(&file, seals())?;
    Ok(file.into())
}

/// The bytes of sealed memory, at most `bytes_max`.
///
/// # Errors
/// If it is not sealed, or there are more bytes.
pub(super) fn unseal(memory: OwnedFd, bytes_max: usize) -> io::Result<Zeroizing<Vec<u8>>> {
    // The kernel has no seals for any other kind of file.
    if !fcntl_get_seals(&memory)?.contains(seals()) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the memory is not sealed"));
    }
    let file = File::from(memory);
    let length = file.metadata()?.len() as usize;
    if length > bytes_max {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "there are too many bytes"));
    }
    let mut bytes = Zeroizing::new(vec![0; length]);
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn sealed_memory_keeps_its_bytes_and_takes_no_others() {
        let memory = seal(b"secret").unwrap();
        let mut copy = File::from(memory.as_fd().try_clone_to_owned().unwrap());
        assert_eq!(copy.write(b"other").unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        copy.set_len(0).unwrap_err();
        fcntl_add_seals(&copy, SealFlags::WRITE).unwrap_err();
        assert_eq!(&**unseal(memory, 6).unwrap(), b"secret");
        assert!(unseal(copy.into(), 5).unwrap_err().to_string().contains("too many"));
    }

    #[test]
    fn what_is_not_sealed_is_refused() {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let memory = memfd_create("open", flags).unwrap();
        fcntl_add_seals(&memory, SealFlags::WRITE).unwrap();
        assert!(unseal(memory, 10).unwrap_err().to_string().contains("not sealed"));
        unseal(tempfile::tempfile().unwrap().into(), 10).unwrap_err();
    }
}
