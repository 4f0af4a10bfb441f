//! The calls of the kernel with which a test loads an object, fills its maps and runs its programs on packets.
//!
//! `bpftool` loads objects (it links maps, types and functions of the kernel); programs and maps are then opened by their names in a file
//! system of the process's own. [`Sandbox`] has that file system and a network namespace; nothing of it outlives the thread, however it
//! ends.

use crate::Plain;
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

const MAP_LOOKUP: libc::c_long = 1;
const MAP_UPDATE: libc::c_long = 2;
const OBJECT_GET: libc::c_long = 7;
const TEST_RUN: libc::c_long = 10;
const INFO: libc::c_long = 15;
const ENABLE_STATISTICS: libc::c_long = 32;

fn bpf<T>(command: libc::c_long, attributes: &mut T) -> io::Result<libc::c_long> {
    let size = size_of::<T>();
    // SAFETY: the attributes have the stated length; what they point to stays until the call returns.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attributes), size) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn text(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_encoded_bytes()).map_err(io::Error::other)
}

/// A command's output; error: what it wrote to standard error.
pub fn run(command: &mut Command) -> io::Result<String> {
    let output = command
        .output()
        .map_err(|error| io::Error::other(format!("{}: {error}", command.get_program().to_string_lossy())))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(format!("{command:?}: {}", errors.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Namespaces of this thread: a network without interfaces but `lo`, and mounts with a file system for programs and maps.
pub struct Sandbox {
    root: PathBuf,
}

impl Sandbox {
    /// The calling thread enters it and stays in it. Errors: no root, no such kernel.
    pub fn enter() -> io::Result<Sandbox> {
        // SAFETY: calls without pointers, or to strings that stay until they return.
        unsafe {
            check(libc::unshare(libc::CLONE_NEWNET | libc::CLONE_NEWNS))?;
            let private = libc::MS_REC | libc::MS_PRIVATE;
            check(libc::mount(c"none".as_ptr(), c"/".as_ptr(), std::ptr::null(), private, std::ptr::null()))?;
        }
        static ENTERED: AtomicU32 = AtomicU32::new(0);
        let (process, number) = (std::process::id(), ENTERED.fetch_add(1, Ordering::Relaxed));
        let root = std::env::temp_dir().join(format!("weftline-bpf-{process}-{number}"));
        fs::create_dir_all(&root)?;
        let place = text(&root)?;
        // SAFETY: as above.
        unsafe {
            let kind = c"bpf".as_ptr();
            check(libc::mount(kind, place.as_ptr(), kind, 0, std::ptr::null()))?;
        }
        run(Command::new("ip").args(["link", "set", "lo", "up"]))?;
        Ok(Sandbox { root })
    }

    /// Runs `ip` with these words.
    pub fn ip(&self, words: &str) -> io::Result<String> {
        run(Command::new("ip").args(words.split_whitespace()))
    }

    /// The number of an interface.
    pub fn interface(&self, name: &str) -> io::Result<u32> {
        let name = CString::new(name).map_err(io::Error::other)?;
        // SAFETY: the name stays until the call returns.
        let number = unsafe { libc::if_nametoindex(name.as_ptr()) };
        if number == 0 { Err(io::Error::last_os_error()) } else { Ok(number) }
    }

    /// Loads all programs of an object. Error: what `bpftool` says, the verifier's words too.
    pub fn load(&self, object: &Path) -> io::Result<Object> {
        // No dots: the file system keeps them for itself.
        let name = object.file_stem().unwrap_or_default().to_string_lossy().replace('.', "-");
        let [programs, maps] = ["programs", "maps"].map(|kind| self.root.join(format!("{name}-{kind}")));
        let mut command = Command::new("bpftool");
        command.args(["prog", "loadall"]).arg(object).arg(&programs).arg("pinmaps").arg(&maps);
        run(&mut command)?;
        Ok(Object { programs, maps })
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        if let Ok(root) = text(&self.root) {
            // SAFETY: the string stays until the call returns.
            unsafe { libc::umount2(root.as_ptr(), libc::MNT_DETACH) };
        }
        let _ = fs::remove_dir(&self.root);
    }
}

/// The programs and maps of an object, by name.
pub struct Object {
    programs: PathBuf,
    maps: PathBuf,
}

fn open(path: &Path) -> io::Result<OwnedFd> {
    #[repr(C)]
    struct Attributes {
        path: u64,
        fd: u32,
        flags: u32,
    }
    let name = text(path)?;
    let mut attributes = Attributes { path: name.as_ptr() as u64, fd: 0, flags: 0 };
    let fd = bpf(OBJECT_GET, &mut attributes)
        .map_err(|error| io::Error::other(format!("{}: {error}", path.display())))?;
    // SAFETY: the kernel has just opened it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

impl Object {
    pub fn program(&self, name: &str) -> io::Result<Program> {
        open(&self.programs.join(name)).map(Program)
    }

    pub fn map(&self, name: &str) -> io::Result<Map> {
        open(&self.maps.join(name)).map(Map)
    }
}

/// A map of arrays or hashes.
pub struct Map(OwnedFd);

#[repr(C)]
struct MapAttributes {
    fd: u32,
    reserved: u32,
    key: u64,
    value: u64,
    flags: u64,
}

impl Map {
    fn call<K: Plain>(&self, command: libc::c_long, key: &K, value: *const u8) -> io::Result<()> {
        let key = key.bytes().as_ptr() as u64;
        let mut attributes =
            MapAttributes { fd: self.0.as_raw_fd() as u32, reserved: 0, key, value: value as u64, flags: 0 };
        bpf(command, &mut attributes).map(|_| ())
    }

    /// `V` must be the map's value.
    pub fn get<K: Plain, V: Plain>(&self, key: &K) -> io::Result<V> {
        let mut value = V::zero();
        self.call(MAP_LOOKUP, key, std::ptr::from_mut(&mut value).cast())?;
        Ok(value)
    }

    /// `V` must be the map's value.
    pub fn put<K: Plain, V: Plain>(&self, key: &K, value: &V) -> io::Result<()> {
        self.call(MAP_UPDATE, key, value.bytes().as_ptr())
    }

    /// The sum over all processors of a counter.
    pub fn count(&self, key: u32) -> io::Result<u64> {
        // SAFETY: a question to the C library.
        let processors = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) }.max(1) as usize;
        let mut values = vec![0u64; processors];
        self.call(MAP_LOOKUP, &key, values.as_mut_ptr().cast())?;
        Ok(values.iter().sum())
    }

    /// Reads the map as a ring buffer of that size in bytes.
    pub fn ring(&self, bytes: usize) -> io::Result<Ring> {
        Ring::of(self.0.as_raw_fd(), bytes)
    }
}

/// What a packet comes with: some fields of the kernel's `struct __sk_buff`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Context {
    pub ingress_interface: u32,
    /// 0: `lo`.
    pub interface: u32,
    pub control: [u32; 5],
    pub time_stamp: u64,
}

const CONTEXT_BYTES: usize = 192;

impl Context {
    fn bytes(&self) -> [u8; CONTEXT_BYTES] {
        let mut bytes = [0; CONTEXT_BYTES];
        bytes[36..40].copy_from_slice(&self.ingress_interface.to_ne_bytes());
        bytes[40..44].copy_from_slice(&self.interface.to_ne_bytes());
        for (place, word) in self.control.iter().enumerate() {
            bytes[48 + 4 * place..][..4].copy_from_slice(&word.to_ne_bytes());
        }
        bytes[152..160].copy_from_slice(&self.time_stamp.to_ne_bytes());
        bytes
    }

    fn read(bytes: &[u8; CONTEXT_BYTES]) -> Context {
        let word = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Context {
            ingress_interface: word(36),
            interface: word(40),
            control: std::array::from_fn(|n| word(48 + 4 * n)),
            time_stamp: u64::from(word(156)) << 32 | u64::from(word(152)),
        }
    }
}

/// What a program made of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    pub verdict: i32,
    pub packet: Vec<u8>,
    pub context: Context,
    /// Mean of the repetitions.
    pub nanoseconds: u32,
}

/// Frames to and from an interface, below the kernel's own protocols.
pub struct Wire(OwnedFd);

impl Wire {
    /// Of an interface of this thread's namespace, frames of one EtherType; it does not wait for any.
    pub fn open(interface: u32, ethertype: u16) -> io::Result<Wire> {
        let protocol = i32::from(ethertype.to_be());
        let address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as u16,
            sll_protocol: ethertype.to_be(),
            sll_ifindex: interface as i32,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        // SAFETY: a new socket, then an address of the stated length.
        unsafe {
            let fd = libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_NONBLOCK, protocol);
            check(fd)?;
            let wire = Wire(OwnedFd::from_raw_fd(fd));
            let length = size_of_val(&address) as libc::socklen_t;
            check(libc::bind(fd, (&raw const address).cast(), length))?;
            Ok(wire)
        }
    }

    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        // SAFETY: the frame has the stated length.
        let sent = unsafe { libc::send(self.0.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// A frame that came in; None: there is none now.
    pub fn receive(&self) -> Option<Vec<u8>> {
        let mut frame = vec![0; 2048];
        // SAFETY: there is room for as many bytes as stated.
        let got = unsafe { libc::recv(self.0.as_raw_fd(), frame.as_mut_ptr().cast(), frame.len(), 0) };
        frame.truncate(usize::try_from(got).ok()?);
        Some(frame)
    }
}

pub struct Program(OwnedFd);

#[repr(C)]
#[derive(Default)]
struct TestAttributes {
    fd: u32,
    result: u32,
    size_in: u32,
    size_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    context_size_in: u32,
    context_size_out: u32,
    context_in: u64,
    context_out: u64,
    flags: u32,
    processor: u32,
    batch: u32,
    reserved: u32,
}

impl Program {
    /// Runs the program `repeat` times on one packet, each time on what the previous run made of it.
    pub fn run(&self, packet: &[u8], context: &Context, repeat: u32) -> io::Result<Ran> {
        let mut output = vec![0; packet.len() + 512];
        let (given, mut left) = (context.bytes(), [0; CONTEXT_BYTES]);
        let mut attributes = TestAttributes {
            fd: self.0.as_raw_fd() as u32,
            size_in: packet.len() as u32,
            size_out: output.len() as u32,
            data_in: packet.as_ptr() as u64,
            data_out: output.as_mut_ptr() as u64,
            repeat,
            context_size_in: CONTEXT_BYTES as u32,
            context_size_out: CONTEXT_BYTES as u32,
            context_in: given.as_ptr() as u64,
            context_out: left.as_mut_ptr() as u64,
            ..TestAttributes::default()
        };
        bpf(TEST_RUN, &mut attributes)?;
        output.truncate(attributes.size_out as usize);
        Ok(Ran {
            verdict: attributes.result as i32,
            packet: output,
            context: Context::read(&left),
            nanoseconds: attributes.duration,
        })
    }

    fn info(&self) -> io::Result<[u64; INFO_WORDS]> {
        #[repr(C)]
        struct Attributes {
            fd: u32,
            size: u32,
            info: u64,
        }
        let mut info = [0u64; INFO_WORDS];
        let mut attributes = Attributes {
            fd: self.0.as_raw_fd() as u32,
            size: size_of_val(&info) as u32,
            info: info.as_mut_ptr() as u64,
        };
        bpf(INFO, &mut attributes)?;
        Ok(info)
    }

    /// Instructions that the verifier let through, and bytes of machine code.
    pub fn size(&self) -> io::Result<(u32, u32)> {
        // Bytes of machine code and bytes of instructions share a word.
        let bytes = self.info()?[2].to_ne_bytes();
        let half = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Ok((half(4) / 8, half(0)))
    }

    /// Nanoseconds in the program so far, and the number of its runs, counted while [`Statistics`] are on.
    pub fn time(&self) -> io::Result<(u64, u64)> {
        let info = self.info()?;
        Ok((info[24], info[25]))
    }
}

/// Words of `struct bpf_prog_info` up to its counters.
const INFO_WORDS: usize = 26;

/// The kernel counts the time in programs until this is dropped.
pub struct Statistics {
    _fd: OwnedFd,
}

impl Statistics {
    pub fn on() -> io::Result<Statistics> {
        let mut kind = 0u32;
        let fd = bpf(ENABLE_STATISTICS, &mut kind)?;
        // SAFETY: the kernel has just opened it.
        Ok(Statistics { _fd: unsafe { OwnedFd::from_raw_fd(fd as RawFd) } })
    }
}

/// The reader's side of a ring buffer.
pub struct Ring {
    /// The reader's position, on a page of its own; then the writer's, on another; then the data, twice in a row.
    reader: *mut u8,
    writer: *mut u8,
    bytes: usize,
    page: usize,
}

impl Ring {
    fn of(fd: RawFd, bytes: usize) -> io::Result<Ring> {
        // SAFETY: new mappings, which stay until `drop`.
        unsafe {
            let page = libc::sysconf(libc::_SC_PAGESIZE) as usize;
            let map = |length: usize, write: i32, offset: usize| {
                let at = libc::mmap(
                    std::ptr::null_mut(),
                    length,
                    libc::PROT_READ | write,
                    libc::MAP_SHARED,
                    fd,
                    offset as libc::off_t,
                );
                if at == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(at.cast::<u8>()) }
            };
            let reader = map(page, libc::PROT_WRITE, 0)?;
            let writer = map(page + 2 * bytes, 0, page).inspect_err(|_| {
                libc::munmap(reader.cast(), page);
            })?;
            Ok(Ring { reader, writer, bytes, page })
        }
    }

    /// The next record, if there is one that is `T`.
    pub fn next_record<T: Plain>(&mut self) -> Option<T> {
        T::from_bytes(&self.next_bytes()?)
    }

    /// The next record, if there is one.
    pub fn next_bytes(&mut self) -> Option<Vec<u8>> {
        const HEADER: usize = 8;
        const DISCARDED: u32 = 1 << 30;
        const BUSY: u32 = 1 << 31;
        // SAFETY: positions and headers lie within the mappings and are aligned; the writer publishes them by release.
        unsafe {
            let (read, written) = (&*self.reader.cast::<AtomicUsize>(), &*self.writer.cast::<AtomicUsize>());
            loop {
                let at = read.load(Ordering::Relaxed);
                if at >= written.load(Ordering::Acquire) {
                    return None;
                }
                let place = self.writer.add(self.page + (at & (self.bytes - 1)));
                let header = (*place.cast::<AtomicU32>()).load(Ordering::Acquire);
                if header & BUSY != 0 {
                    return None;
                }
                let length = (header & !(BUSY | DISCARDED)) as usize;
                let record = std::slice::from_raw_parts(place.add(HEADER), length).to_vec();
                read.store(at + (length + HEADER).next_multiple_of(8), Ordering::Release);
                if header & DISCARDED == 0 {
                    return Some(record);
                }
            }
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: they were mapped with these lengths.
        unsafe {
            libc::munmap(self.reader.cast(), self.page);
            libc::munmap(self.writer.cast(), self.page + 2 * self.bytes);
        }
    }
}
