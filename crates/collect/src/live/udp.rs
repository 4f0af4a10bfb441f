//! Datagrams from a UDP socket, in batches, with every datagram that the kernel dropped counted.
//!
//! `SO_MEMINFO` gives the socket's drops on request. `SO_RXQ_OVFL` attaches the same counter
//! to datagrams, so that drops after the last received datagram would never be seen. Both counters have 32
//! bits; they are read at least once a second and extended to 64.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};

/// Datagrams that one system call returns at most.
const BATCH: usize = 64;
/// The maximum size of a UDP datagram's payload, rounded up.
const DATAGRAM_BYTES: usize = 1 << 16;
/// Requested size of the receive buffer of the kernel.
pub const RECEIVE_BUFFER_BYTES: usize = 32 << 20;
/// `SK_MEMINFO_DROPS` of linux/sock_diag.h, and the number of counters there.
const MEMINFO_DROPS: usize = 8;
const MEMINFO_COUNTERS: usize = 9;
const SO_MEMINFO: libc::c_int = 55;

/// An open socket and its counters.
pub struct UdpInput {
    socket: UdpSocket,
    bytes: Vec<u8>,
    addresses: Vec<libc::sockaddr_storage>,
    /// Extends the counter of the kernel.
    last_drops: u32,
    dropped: u64,
    received: u64,
    buffer_bytes: usize,
}

impl UdpInput {
    /// Binds the address, with a receive buffer that is as large as the rights of the process allow.
    pub fn bind(address: SocketAddr) -> io::Result<UdpInput> {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        let fd = socket.as_raw_fd();
        let size = RECEIVE_BUFFER_BYTES as libc::c_int;
        // With CAP_NET_ADMIN the limit of the system does not apply.
        if set_option(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &size).is_err() {
            set_option(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, &size)?;
        }
        let mut granted: libc::c_int = 0;
        get_option(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, &mut granted)?;
        Ok(UdpInput {
            socket,
            bytes: vec![0; BATCH * DATAGRAM_BYTES],
            // SAFETY: a sockaddr_storage of zeros is a valid value.
            addresses: vec![unsafe { std::mem::zeroed() }; BATCH],
            last_drops: 0,
            dropped: 0,
            received: 0,
            buffer_bytes: granted as usize,
        })
    }

    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    pub fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    pub fn received(&self) -> u64 {
        self.received
    }

    /// The receive buffer that the kernel granted; it counts its own overhead in it.
    pub fn buffer_bytes(&self) -> usize {
        self.buffer_bytes
    }

    /// Takes the datagrams that wait, at most one batch, without blocking; returns their number.
    pub fn receive(&mut self, take: &mut impl FnMut(IpAddr, &[u8])) -> io::Result<usize> {
        let mut parts = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: DATAGRAM_BYTES }; BATCH];
        // SAFETY: an mmsghdr of zeros is a valid value.
        let mut headers: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
        let pairs = headers.iter_mut().zip(&mut parts).zip(&mut self.addresses);
        for (((header, part), address), bytes) in pairs.zip(self.bytes.chunks_exact_mut(DATAGRAM_BYTES)) {
            part.iov_base = bytes.as_mut_ptr().cast();
            header.msg_hdr.msg_name = std::ptr::from_mut(address).cast();
            header.msg_hdr.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
            header.msg_hdr.msg_iov = part;
            header.msg_hdr.msg_iovlen = 1;
        }
        // SAFETY: each header points to one buffer and one address, which live until the end of this
        // function.
        let count = unsafe {
            libc::recvmmsg(
                self.descriptor(),
                headers.as_mut_ptr(),
                BATCH as libc::c_uint,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        if count < 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(0),
                // An ICMP answer to something that was never sent from here.
                io::ErrorKind::ConnectionRefused => Ok(0),
                _ => Err(error),
            };
        }
        let count = count as usize;
        self.received += count as u64;
        let datagrams = headers[..count].iter().zip(&self.addresses);
        for ((header, address), bytes) in datagrams.zip(self.bytes.chunks_exact(DATAGRAM_BYTES)) {
            take(ip_of(address), &bytes[..header.msg_len as usize]);
        }
        Ok(count)
    }

    /// Datagrams that the kernel dropped so far, because the buffer was full or their checksum was wrong.
    pub fn dropped(&mut self) -> io::Result<u64> {
        let mut counters = [0u32; MEMINFO_COUNTERS];
        get_option(self.descriptor(), libc::SOL_SOCKET, SO_MEMINFO, &mut counters)?;
        let drops = counters[MEMINFO_DROPS];
        self.dropped += u64::from(drops.wrapping_sub(self.last_drops));
        self.last_drops = drops;
        Ok(self.dropped)
    }
}

/// The IP address of a socket address; that of IPv4 if it is mapped.
fn ip_of(address: &libc::sockaddr_storage) -> IpAddr {
    let pointer = std::ptr::from_ref(address);
    match libc::c_int::from(address.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says which structure it is; the storage is large enough and aligned for it.
            let address = unsafe { &*pointer.cast::<libc::sockaddr_in>() };
            IpAddr::V4(*SocketAddrV4::new(u32::from_be(address.sin_addr.s_addr).into(), 0).ip())
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let address = unsafe { &*pointer.cast::<libc::sockaddr_in6>() };
            let ip: Ipv6Addr = address.sin6_addr.s6_addr.into();
            SocketAddrV6::new(ip, 0, 0, 0).ip().to_canonical()
        }
        _ => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
    }
}

pub(super) fn set_option<T>(fd: RawFd, level: libc::c_int, name: libc::c_int, value: &T) -> io::Result<()> {
    // SAFETY: the pointer and the length are those of `value`.
    let result = unsafe {
        libc::setsockopt(fd, level, name, std::ptr::from_ref(value).cast(), size_of::<T>() as libc::socklen_t)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

pub(super) fn get_option<T>(
    fd: RawFd,
    level: libc::c_int,
    name: libc::c_int,
    value: &mut T,
) -> io::Result<()> {
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the pointer and the length are those of `value`, whose types have no invalid values.
    let result = unsafe { libc::getsockopt(fd, level, name, std::ptr::from_mut(value).cast(), &mut length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_is_what_was_received_and_dropped_at_any_overload() {
        for local in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(mut input) = UdpInput::bind(local.parse().unwrap()) else { continue };
            let small: libc::c_int = 20_000;
            set_option(input.descriptor(), libc::SOL_SOCKET, libc::SO_RCVBUF, &small).unwrap();
            let sender = UdpSocket::bind(local).unwrap();
            sender.connect(input.address().unwrap()).unwrap();
            let (mut sent, mut bytes) = (0, 0);
            let expected = sender.local_addr().unwrap().ip();
            for burst in 1..200 {
                for _ in 0..burst {
                    sent += u64::from(sender.send(&[7; 100]).is_ok());
                }
                input
                    .receive(&mut |source, datagram| {
                        assert_eq!(source, expected);
                        bytes += datagram.len();
                    })
                    .unwrap();
            }
            while input.receive(&mut |_, datagram| bytes += datagram.len()).unwrap() > 0 {}
            let dropped = input.dropped().unwrap();
            assert!(dropped > 0, "the burst has to overload the socket");
            assert_eq!(input.received() + dropped, sent);
            assert_eq!(bytes as u64, 100 * input.received());
        }
    }
}
