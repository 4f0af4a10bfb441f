//! Instructions executed by this thread, where the kernel counts them (Linux perf events).

/// A running count.
pub struct Instructions {
    #[cfg(target_os = "linux")]
    counter: std::os::fd::OwnedFd,
}

#[cfg(target_os = "linux")]
impl Instructions {
    /// Starts counting; none where the kernel or the machine does not.
    pub fn start() -> Option<Instructions> {
        use std::os::fd::FromRawFd;
        /// `struct perf_event_attr` in its first published size (64 bytes): type, size, config, ..., flags.
        #[repr(C)]
        #[derive(Default)]
        struct Attributes {
            kind: u32,
            size: u32,
            config: u64,
            sample_period: u64,
            sample_type: u64,
            read_format: u64,
            flags: u64,
            wakeup: u32,
            breakpoint: u32,
            config1: u64,
        }
        const HARDWARE: u32 = 0;
        const INSTRUCTIONS: u64 = 1;
        const EXCLUDE_KERNEL_AND_HYPERVISOR: u64 = 1 << 5 | 1 << 6;
        let attributes = Attributes {
            kind: HARDWARE,
            size: size_of::<Attributes>() as u32,
            config: INSTRUCTIONS,
            flags: EXCLUDE_KERNEL_AND_HYPERVISOR,
            ..Attributes::default()
        };
        let (this_thread, any_cpu, no_group) = (0, -1, -1);
        // SAFETY: the kernel reads `size` bytes of the attributes and returns a new descriptor or -1.
        let descriptor = unsafe {
            libc::syscall(libc::SYS_perf_event_open, &attributes, this_thread, any_cpu, no_group, 0)
        };
        // SAFETY: a descriptor that is not negative is ours alone.
        (descriptor >= 0)
            .then(|| Instructions { counter: unsafe { FromRawFd::from_raw_fd(descriptor as i32) } })
    }

    /// Instructions since the start.
    pub fn read(self) -> Option<u64> {
        use std::io::Read;
        let mut count = [0; 8];
        std::fs::File::from(self.counter).read_exact(&mut count).ok()?;
        Some(u64::from_ne_bytes(count)).filter(|&count| count > 0)
    }
}

#[cfg(not(target_os = "linux"))]
impl Instructions {
    pub fn start() -> Option<Instructions> {
        None
    }
    pub fn read(self) -> Option<u64> {
        None
    }
}
