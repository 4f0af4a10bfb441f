//! What hosts of the kernel receive: it is taken as it comes, and dropped.

const BUFFER_BYTES: usize = 1 << 18;
const MOST_EVENTS: usize = 64;

/// Receives from every connection of an epoll instance until the process ends. Connections may be added to it at any
/// time, non-blocking and with their descriptor as their data. One whose other end has closed it is closed.
pub fn receive(epoll: i32) {
    let mut buffer = vec![0u8; BUFFER_BYTES];
    // SAFETY: events of zeros are valid values.
    let mut events: [libc::epoll_event; MOST_EVENTS] = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: pointer and number are those of `events`.
        let ready = unsafe { libc::epoll_wait(epoll, events.as_mut_ptr(), MOST_EVENTS as i32, -1) };
        if ready < 0 && std::io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
            return;
        }
        for event in &events[..usize::try_from(ready).unwrap_or(0)] {
            let connection = event.u64 as u32 as i32;
            // What is left is reported again.
            // SAFETY: pointer and length are those of the buffer.
            let got = unsafe { libc::recv(connection, buffer.as_mut_ptr().cast(), buffer.len(), 0) };
            let nothing_yet = got < 0
                && matches!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EAGAIN | libc::EINTR));
            if got <= 0 && !nothing_yet {
                // SAFETY: the descriptor was handed over, and leaves the epoll instance as it is closed.
                unsafe { libc::close(connection) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::{AsRawFd, IntoRawFd};

    /// Megabytes are taken from two connections, one of them added later, and an end is answered with an end.
    #[test]
    fn takes_all_and_closes_after_the_other_end() {
        // SAFETY: no pointers.
        let epoll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        std::thread::spawn(move || super::receive(epoll));
        for _ in 0..2 {
            let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (receiver, _) = listener.accept().unwrap();
            receiver.set_nonblocking(true).unwrap();
            let mut event =
                libc::epoll_event { events: libc::EPOLLIN as u32, u64: receiver.as_raw_fd() as u64 };
            let receiver = receiver.into_raw_fd();
            // SAFETY: the pointer is that of `event`.
            assert_eq!(unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, receiver, &mut event) }, 0);
            sender.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
            sender.set_write_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
            // More than the buffers of both ends hold.
            sender.write_all(&vec![7; 32 << 20]).unwrap();
            sender.shutdown(std::net::Shutdown::Write).unwrap();
            assert_eq!(std::io::Read::read(&mut sender, &mut [0]).unwrap(), 0);
        }
    }
}
