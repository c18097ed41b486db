//! Returns freed memory to the kernel. All `unsafe` of this crate is here.

/// Returns the pages that no allocation uses. The allocator of glibc keeps most of them: what many connections took would
/// count as taken after their end.
pub(super) fn trim() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes a number only, and may be called by any thread at any time (malloc_trim(3)).
    unsafe {
        nix::libc::malloc_trim(0);
    }
}
