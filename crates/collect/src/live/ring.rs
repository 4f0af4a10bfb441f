//! Frames of a network interface, from a ring that the kernel fills (AF_PACKET, TPACKET_V3).
//!
//! Frames are read where the kernel put them, block by block, without a system call for each. Frames that
//! this machine sends are left out. `PACKET_STATISTICS` counts frames that matched and those that found the
//! ring full: matched = received + dropped once the ring is empty.
//!
//! Source: linux/if_packet.h; Documentation/networking/packet_mmap.rst.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};

use super::udp::{get_option, set_option};
use crate::capture::Packet;
use crate::ip::Link;

const BLOCK_BYTES: usize = 1 << 20;
const BLOCKS: usize = 32;
/// Room for a frame of any size that the kernel hands over; of longer ones it keeps the start.
const FRAME_BYTES: usize = 1 << 16;
/// After this time the kernel hands a block over although it is not full.
const RETIRE_MS: u32 = 20;
const SECOND_NS: u64 = 1_000_000_000;
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;

/// `tpacket_block_desc` with its first header (`tpacket_hdr_v1`).
#[repr(C)]
struct BlockHeader {
    version: u32,
    offset_to_private: u32,
    status: AtomicU32,
    packets: u32,
    offset_to_first: u32,
    length: u32,
    sequence: u64,
    first_time: [u32; 2],
    last_time: [u32; 2],
}

/// `tpacket3_hdr`, as far as it is read.
#[repr(C)]
struct FrameHeader {
    next_offset: u32,
    seconds: u32,
    nanoseconds: u32,
    kept: u32,
    length: u32,
    status: u32,
    link_offset: u16,
    network_offset: u16,
}

/// An interface that is read.
pub struct RingInput {
    socket: OwnedFd,
    map: *mut u8,
    block: usize,
    link: Option<Link>,
    name: CString,
    /// Of the interface that it is bound to.
    index: u32,
    /// The interface went down since it was last looked for.
    went_down: bool,
    is_absent: bool,
    received: u64,
    matched: u64,
    dropped: u64,
}

// SAFETY: the mapping belongs to this value alone, and no reference to it outlives a call.
unsafe impl Send for RingInput {}

impl RingInput {
    /// Opens the interface. Error: no such interface, or no right to (CAP_NET_RAW).
    pub fn open(name: &str) -> io::Result<RingInput> {
        let name = CString::new(name)?;
        let index = index_of(&name);
        if index == 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: no pointers. Protocol 0: nothing is received before the socket is bound.
        let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just opened and belongs to nothing else.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        let version = libc::tpacket_versions::TPACKET_V3 as libc::c_int;
        set_option(fd, libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
        // Since Linux 4.20; without it, frames that are sent are seen as well.
        let _ = set_option(fd, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, &(1 as libc::c_int));
        // SAFETY: a request of zeros is a valid value.
        let mut request: libc::tpacket_req3 = unsafe { std::mem::zeroed() };
        request.tp_block_size = BLOCK_BYTES as u32;
        request.tp_block_nr = BLOCKS as u32;
        request.tp_frame_size = FRAME_BYTES as u32;
        request.tp_frame_nr = (BLOCK_BYTES / FRAME_BYTES * BLOCKS) as u32;
        request.tp_retire_blk_tov = RETIRE_MS;
        set_option(fd, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        // SAFETY: a new shared mapping of the ring, whose size is that of the request.
        let map = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                BLOCK_BYTES * BLOCKS,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd,
                0,
            )
        };
        if map == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mut input = RingInput {
            socket,
            map: map.cast(),
            block: 0,
            link: None,
            name,
            index,
            went_down: false,
            is_absent: false,
            received: 0,
            matched: 0,
            dropped: 0,
        };
        input.bind(index)?;
        Ok(input)
    }

    fn bind(&mut self, index: u32) -> io::Result<()> {
        // SAFETY: a sockaddr_ll of zeros is a valid value.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = index as libc::c_int;
        let mut length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        let pointer = std::ptr::from_mut(&mut address).cast::<libc::sockaddr>();
        // SAFETY: pointer and length are those of `address` in both calls.
        let result = unsafe {
            match libc::bind(self.descriptor(), pointer, length) {
                0 => libc::getsockname(self.descriptor(), pointer, &mut length),
                error => error,
            }
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        self.link = match address.sll_hatype {
            libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK => Some(Link::Ethernet),
            libc::ARPHRD_NONE | libc::ARPHRD_PPP => Some(Link::Raw),
            _ => None,
        };
        Ok(())
    }

    pub fn name(&self) -> String {
        self.name.to_string_lossy().into_owned()
    }

    /// Takes the error that the kernel reports once an interface went down: until then, waiting for frames
    /// ends at once.
    pub fn take_error(&mut self) {
        let mut error: libc::c_int = 0;
        let taken = get_option(self.descriptor(), libc::SOL_SOCKET, libc::SO_ERROR, &mut error);
        self.went_down |= taken.is_ok() && error == libc::ENETDOWN;
    }

    /// Looks for an interface that went down: one that was removed and made again has another number, and is
    /// read from then on. Returns whether there is none of this name.
    pub fn is_absent(&mut self) -> bool {
        if self.went_down || self.is_absent {
            let index = index_of(&self.name);
            if index != 0 && (index == self.index || self.bind(index).is_ok()) {
                self.index = index;
                self.is_absent = false;
            } else {
                self.is_absent = true;
            }
            self.went_down = false;
        }
        self.is_absent
    }

    pub fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    pub fn received(&self) -> u64 {
        self.received
    }

    /// Takes the frames of the blocks that are ready, at most the whole ring, without blocking; returns their
    /// number.
    pub fn receive(&mut self, take: &mut impl FnMut(&Packet)) -> usize {
        let before = self.received;
        for _ in 0..BLOCKS {
            // SAFETY: the block lies within the mapping, which begins at a page.
            let start = unsafe { self.map.add(self.block * BLOCK_BYTES) };
            // SAFETY: a block begins with its header; the kernel changes the status alone while it owns it.
            let header = unsafe { &*start.cast::<BlockHeader>() };
            if header.status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
                break;
            }
            // SAFETY: the block belongs to this side until its status says otherwise.
            let bytes = unsafe { std::slice::from_raw_parts(start, BLOCK_BYTES) };
            self.frames(bytes, header.packets, header.offset_to_first as usize, take);
            header.status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.block = (self.block + 1) % BLOCKS;
        }
        (self.received - before) as usize
    }

    fn frames(&mut self, block: &[u8], count: u32, mut at: usize, take: &mut impl FnMut(&Packet)) {
        for _ in 0..count {
            let Some(frame) = block.get(at..).filter(|frame| frame.len() >= size_of::<FrameHeader>()) else {
                return;
            };
            // SAFETY: the slice is long enough; unaligned reads are allowed.
            let header = unsafe { frame.as_ptr().cast::<FrameHeader>().read_unaligned() };
            let start = usize::from(header.link_offset);
            let bytes = frame.get(start..start + header.kept as usize).unwrap_or_default();
            self.received += 1;
            take(&Packet {
                time_ns: u64::from(header.seconds) * SECOND_NS + u64::from(header.nanoseconds),
                link: self.link,
                interface: 0,
                length: header.length,
                bytes,
            });
            if header.next_offset == 0 {
                return;
            }
            at += header.next_offset as usize;
        }
    }

    /// Frames that matched so far, and those of them that found the ring full.
    pub fn counted(&mut self) -> io::Result<(u64, u64)> {
        // The counters of the kernel start again with every call.
        let mut counts = [0u32; 3];
        get_option(self.descriptor(), libc::SOL_PACKET, libc::PACKET_STATISTICS, &mut counts)?;
        self.matched += u64::from(counts[0]);
        self.dropped += u64::from(counts[1]);
        Ok((self.matched, self.dropped))
    }
}

impl Drop for RingInput {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `open`, with this length, and nothing refers to it any more.
        unsafe { libc::munmap(self.map.cast(), BLOCK_BYTES * BLOCKS) };
    }
}

/// The number of an interface; 0: there is none of this name.
fn index_of(name: &CStr) -> u32 {
    // SAFETY: the string ends with 0.
    unsafe { libc::if_nametoindex(name.as_ptr()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::process::Command;
    use std::time::{Duration, Instant};

    /// Whether waiting for frames ends at once, with an error.
    fn ends_at_once(input: &RingInput) -> bool {
        let mut polled = libc::pollfd { fd: input.descriptor(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one descriptor.
        unsafe { libc::poll(&mut polled, 1, 0) };
        polled.revents & libc::POLLERR != 0
    }

    /// Frames that an interface receives until one came.
    fn frames_after(input: &mut RingInput, ip: &dyn Fn(&str)) -> usize {
        ip("link set near0 up");
        ip("link set far0 up");
        ip("addr replace 10.9.9.1/24 dev near0");
        ip("neigh replace 10.9.9.2 lladdr 02:00:00:00:00:02 dev near0");
        let sender = UdpSocket::bind("10.9.9.1:0").unwrap();
        let until = Instant::now() + Duration::from_secs(5);
        let mut count = 0;
        while count == 0 && Instant::now() < until {
            sender.send_to(b"frame", "10.9.9.2:9").unwrap();
            std::thread::sleep(Duration::from_millis(30));
            count = input.receive(&mut |_| {});
        }
        count
    }

    /// Needs root and `ip`, for a network namespace of the thread's own; without them there is nothing to
    /// test.
    #[test]
    fn an_interface_that_went_down_or_was_made_again_is_read_on() {
        let own = std::thread::spawn(|| {
            // SAFETY: no pointers; the thread ends with the test.
            if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
                return eprintln!("skipped: {}", io::Error::last_os_error());
            }
            let ip = |words: &str| {
                let done = Command::new("ip").args(words.split(' ')).status();
                assert!(done.is_ok_and(|status| status.success()), "ip {words}");
            };
            if Command::new("ip").arg("-V").output().is_err() {
                return eprintln!("skipped: no ip");
            }
            ip("link add near0 type veth peer name far0");
            let mut input = RingInput::open("far0").unwrap();
            // It is not up yet.
            assert!(ends_at_once(&input));
            input.take_error();
            assert!(!ends_at_once(&input) && !input.is_absent());
            assert!(frames_after(&mut input, &ip) > 0);
            ip("link set far0 down");
            assert!(ends_at_once(&input));
            input.take_error();
            assert!(!ends_at_once(&input) && !input.is_absent());
            assert!(frames_after(&mut input, &ip) > 0);
            ip("link del far0");
            input.take_error();
            assert!(!ends_at_once(&input) && input.is_absent() && input.is_absent());
            ip("link add near0 type veth peer name far0");
            assert!(!input.is_absent());
            input.take_error();
            assert!(!input.is_absent() && frames_after(&mut input, &ip) > 0);
        });
        own.join().unwrap();
    }

    /// Needs CAP_NET_RAW; without it there is nothing to test.
    #[test]
    fn frames_of_the_loopback_are_received_once_and_add_up() {
        let mut input = match RingInput::open("lo") {
            Ok(input) => input,
            Err(error) => return eprintln!("skipped: {error}"),
        };
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = receiver.local_addr().unwrap().port();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        const SENT: usize = 5_000;
        for n in 0..SENT as u32 {
            sender.send_to(&n.to_be_bytes(), ("127.0.0.1", port)).unwrap();
        }
        let (mut mine, mut next) = (0, 0u32);
        let until = Instant::now() + Duration::from_secs(5);
        while mine < SENT && Instant::now() < until {
            input.receive(&mut |packet| {
                let Ok(Some(ip)) = packet.link.unwrap().ip(packet.bytes) else { return };
                let Some(udp) = ip.get(20..32).filter(|udp| udp[2..4] == port.to_be_bytes()) else { return };
                assert_eq!(u32::from_be_bytes(udp[8..12].try_into().unwrap()), next);
                next += 1;
                mine += 1;
            });
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(mine, SENT);
        assert!(RingInput::open("no-such-interface").is_err());
    }
}
