use super::*;

fn star17(buffer: u64) -> SharedBuffer {
    star17_of(buffer, 1)
}

/// The same for packets of this number of classes.
fn star17_of(buffer: u64, classes: u32) -> SharedBuffer {
    SharedBuffer::new(Bytes(buffer), &PORTS, &pfc(classes), 1.0, Rate::from_gbps(100), 1048)
}

const PORTS: [BufferedPort; 17] = [BufferedPort { rate: Rate::from_gbps(100), delay: Time::from_us(1) }; 17];

fn pfc(classes: u32) -> PfcConfig {
    PfcConfig {
        enabled: true,
        classes,
        reserve: Bytes(4096),
        headroom_factor: 3,
        headroom_extra: false,
        resume_offset: Bytes(3072),
        shift: 3,
    }
}

#[test]
fn a_queue_that_all_other_ports_feed_is_longest_when_the_last_of_them_is_paused() {
    // Sixteen shares of an eighth of what they leave: two thirds of the pool, and what is set aside for each.
    let mut buffer = star17(4 << 20);
    let pool = buffer.lossless.as_ref().unwrap().pool;
    let longest = longest_queue(Bytes(4 << 20), &PORTS, &pfc(1), Rate::from_gbps(100), 1048).unwrap();
    assert_eq!(longest, pool * 2 / 3 + 16 * (4096 + 37_500));
    let mut left: Vec<u16> = (0..16).collect();
    while !left.is_empty() {
        left.retain(|&port| buffer.admit(port, 3, 1000, 0) == Admission::Taken);
    }
    // Without what arrives after the pauses, within a packet of each.
    assert!((longest - 16 * 37_500).abs_diff(buffer.held) < 16_000, "{} of {longest}", buffer.held);
}

#[test]
fn threshold_of_a_one_mebibyte_star_is_the_authors_value() {
    assert_eq!(star17(1 << 20).lossless.unwrap().threshold(0), 42_680);
}

#[test]
fn one_ingress_alone_stops_at_a_ninth_of_the_pool() {
    let mut buffer = star17(32 << 20);
    let pool = buffer.lossless.as_ref().unwrap().pool;
    let mut taken = 0;
    while buffer.admit(0, 3, 1000, 0) == Admission::Taken {
        taken += 1000;
    }
    assert!((taken as i64 - 4096 - (pool / 9) as i64).abs() < 2000, "{taken} of {pool}");
    assert!(!buffer.may_resume(0, 3));
    for _ in 0..5 {
        buffer.release(0, 3, 1000);
    }
    assert!(buffer.may_resume(0, 3));
}

#[test]
fn what_may_pass_would_be_admitted_and_call_for_no_pause() {
    let mut random = crate::engine::random::RandomStream::new(5, "pass");
    let mut passed = 0;
    for lossless in [true, false] {
        let mut buffer = star17(1 << 20);
        if !lossless {
            buffer.lossless = None;
        }
        for _ in 0..20_000 {
            let (port, size) = (random.below(17) as u16, 60 + random.below(1000));
            if random.below(3) == 0 && buffer.held > 0 {
                // Whoever it belongs to: some port that holds as much.
                let held = (0..17).find(|&p| match &buffer.lossless {
                    Some(l) => u64::from(l.ingress[usize::from(p) * CLASSES + 3].bytes) >= size,
                    None => buffer.held >= size,
                });
                held.into_iter().for_each(|p| buffer.release(p, 3, size));
            }
            let mut other = buffer.clone();
            if buffer.lets_pass(port, 3, size) {
                passed += 1;
                assert_eq!(other.admit(port, 3, size, 0), Admission::Taken);
                other.release(port, 3, size);
                assert!(!other.may_resume(port, 3) && other.held == buffer.held);
            }
            if random.below(2) == 0 {
                buffer.admit(port, 3, size, 0);
            }
        }
    }
    assert!(passed > 10_000, "{passed}");
}

#[test]
fn everything_charged_is_released() {
    let mut buffer = star17(1 << 20);
    let mut random = crate::engine::random::RandomStream::new(3, "buffer");
    let mut inside = Vec::new();
    for _ in 0..20_000 {
        if random.below(2) == 0 || inside.is_empty() {
            let (port, size) = (random.below(17) as u16, 60 + random.below(1000));
            if buffer.admit(port, 3, size, 0) != Admission::Refused {
                inside.push((port, size));
            }
        } else {
            let (port, size) = inside.swap_remove(random.below(inside.len() as u64) as usize);
            buffer.release(port, 3, size);
        }
    }
    for (port, size) in inside {
        buffer.release(port, 3, size);
    }
    let lossless = buffer.lossless.unwrap();
    assert_eq!((lossless.shared_used, buffer.held), (0, 0));
    assert!(lossless.ingress.iter().all(|i| i.bytes == 0 && i.headroom_used == 0));
}

/// Fills the buffer by all ports and the first classes, each until a packet is refused; whether each had paused its sender and then
/// had all of its headroom.
fn fill(buffer: &mut SharedBuffer, classes: u8) -> bool {
    let mut lossless = true;
    for (port, class) in (0..17).flat_map(|port| (1..=classes).map(move |class| (port, class))) {
        let (mut paused, mut after) = (false, 0);
        loop {
            match buffer.admit(port, class, 500, 0) {
                Admission::Refused => break,
                Admission::Pauses => paused = true,
                Admission::Taken if paused => after += 500,
                Admission::Taken => {}
            }
        }
        lossless &= paused && after >= 37_500 - 1000;
    }
    lossless
}

#[test]
fn a_switch_holds_no_more_than_its_buffer_and_has_headroom_for_each_class_in_use() {
    for (classes, in_use) in [(1, 1), (3, 3), (7, 7), (1, 3), (2, 7)] {
        let mut buffer = star17_of(8 << 20, classes);
        assert_eq!(fill(&mut buffer, in_use), u32::from(in_use) == classes, "{in_use} for {classes}");
        assert!(buffer.held <= buffer.size, "{in_use} for {classes}: {} of {}", buffer.held, buffer.size);
    }
}
