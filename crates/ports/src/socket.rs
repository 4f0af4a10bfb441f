//! An interface: frames in batches, each with the time at which the kernel received it.
//!
//! `recvmmsg` and not a ring of blocks: the kernel hands a block that is not full over after a millisecond at
//! the earliest.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

const BATCH: usize = 64;
/// The longest frame that is taken.
const FRAME_BYTES: usize = 9600;
const CONTROL_BYTES: usize = 64;
const SOCKET_BUFFER: libc::c_int = 1 << 24;
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
const SO_TIMESTAMPNS: libc::c_int = 35;
const SECOND_NS: u64 = 1_000_000_000;

pub struct Interface {
    socket: OwnedFd,
    /// Frames that the kernel had for this socket, and those of them for which it had no room.
    pub matched: u64,
    pub missed: u64,
}

/// Room for a batch of frames, for one interface after the other.
pub struct Batch {
    bytes: Vec<u8>,
    controls: Vec<[u64; CONTROL_BYTES / 8]>,
    places: Vec<libc::iovec>,
    messages: Vec<libc::mmsghdr>,
}

impl Batch {
    pub fn new() -> Batch {
        let mut batch = Batch {
            bytes: vec![0; BATCH * FRAME_BYTES],
            controls: vec![[0; CONTROL_BYTES / 8]; BATCH],
            places: Vec::with_capacity(BATCH),
            messages: Vec::with_capacity(BATCH),
        };
        for at in 0..BATCH {
            let base = batch.bytes[at * FRAME_BYTES..].as_mut_ptr().cast();
            batch.places.push(libc::iovec { iov_base: base, iov_len: FRAME_BYTES });
        }
        for at in 0..BATCH {
            // SAFETY: a header of zeros is a valid value.
            let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
            message.msg_hdr.msg_iov = &mut batch.places[at];
            message.msg_hdr.msg_iovlen = 1;
            batch.messages.push(message);
        }
        batch
    }
}

impl Interface {
    /// Opens an interface of this network namespace. Errors: no such interface, or no right to (CAP_NET_RAW).
    pub fn open(name: &str) -> io::Result<Interface> {
        let text = CString::new(name)?;
        // SAFETY: the string ends with 0.
        let index = unsafe { libc::if_nametoindex(text.as_ptr()) };
        if index == 0 {
            return Err(io::Error::last_os_error());
        }
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: no pointers. Protocol 0: nothing is received before the socket is bound.
        let fd = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just opened and belongs to nothing else.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        set_option(fd, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)?;
        set_option(fd, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1)?;
        set_option(fd, libc::SOL_SOCKET, SO_TIMESTAMPNS, 1)?;
        // Needs CAP_NET_ADMIN; without it the default sizes remain.
        let _ = set_option(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, SOCKET_BUFFER);
        let _ = set_option(fd, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, SOCKET_BUFFER);
        // SAFETY: a sockaddr_ll of zeros is a valid value.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = index as libc::c_int;
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: pointer and length are those of `address`.
        if unsafe { libc::bind(fd, std::ptr::from_ref(&address).cast(), length) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Interface { socket, matched: 0, missed: 0 })
    }

    pub fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Takes a batch of frames: the kernel's time of each (CLOCK_REALTIME, ns), and its bytes, none if it is
    /// too long. Returns whether there may be more.
    pub fn receive(&self, batch: &mut Batch, take: &mut impl FnMut(Option<u64>, Option<&[u8]>)) -> bool {
        for (message, control) in batch.messages.iter_mut().zip(&mut batch.controls) {
            message.msg_hdr.msg_control = control.as_mut_ptr().cast();
            message.msg_hdr.msg_controllen = CONTROL_BYTES as _;
            message.msg_hdr.msg_flags = 0;
        }
        let messages = batch.messages.as_mut_ptr();
        // SAFETY: every header leads to a place of its own in `bytes` and `controls`, which do not move.
        let got = unsafe {
            libc::recvmmsg(
                self.descriptor(),
                messages,
                BATCH as libc::c_uint,
                libc::MSG_DONTWAIT as _,
                std::ptr::null_mut(),
            )
        };
        let got = usize::try_from(got).unwrap_or(0);
        for at in 0..got {
            let message = &batch.messages[at];
            let length = message.msg_len as usize;
            let whole = message.msg_hdr.msg_flags & libc::MSG_TRUNC == 0 && length <= FRAME_BYTES;
            let start = at * FRAME_BYTES;
            take(stamp(&message.msg_hdr), whole.then(|| &batch.bytes[start..start + length]));
        }
        got == BATCH
    }

    /// Sends a frame; whether the kernel took it.
    pub fn send(&self, frame: &[u8]) -> bool {
        // SAFETY: pointer and length are those of the frame.
        let sent =
            unsafe { libc::send(self.descriptor(), frame.as_ptr().cast(), frame.len(), libc::MSG_DONTWAIT) };
        usize::try_from(sent) == Ok(frame.len())
    }

    /// Adds what the kernel counted since it was asked last.
    pub fn count(&mut self) {
        let mut counts = [0u32; 2];
        let mut length = size_of_val(&counts) as libc::socklen_t;
        let (level, name) = (libc::SOL_PACKET, libc::PACKET_STATISTICS);
        let pointer = counts.as_mut_ptr().cast();
        // SAFETY: pointer and length are those of `counts`.
        if unsafe { libc::getsockopt(self.descriptor(), level, name, pointer, &mut length) } == 0 {
            self.matched += u64::from(counts[0]);
            self.missed += u64::from(counts[1]);
        }
    }
}

/// When the kernel received a frame.
fn stamp(header: &libc::msghdr) -> Option<u64> {
    // SAFETY: the kernel has written the control messages and their length.
    let mut message = unsafe { libc::CMSG_FIRSTHDR(header) };
    while !message.is_null() {
        // SAFETY: the message lies within the control buffer, which is aligned for it.
        let one = unsafe { &*message };
        if one.cmsg_level == libc::SOL_SOCKET && one.cmsg_type == SO_TIMESTAMPNS {
            // SAFETY: a time stamp of this kind is two 64-bit numbers; unaligned reads are allowed.
            let [seconds, ns] = unsafe { libc::CMSG_DATA(message).cast::<[u64; 2]>().read_unaligned() };
            return Some(seconds * SECOND_NS + ns);
        }
        // SAFETY: header and message belong together.
        message = unsafe { libc::CMSG_NXTHDR(header, message) };
    }
    None
}

fn set_option(fd: RawFd, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: pointer and length are those of `value`.
    match unsafe { libc::setsockopt(fd, level, name, std::ptr::from_ref(&value).cast(), length) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
