use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Mutex;

use super::*;

/// Events up to and including the first that `is_last` accepts, as text. Received bytes are shown and released.
fn events_until(ring: &mut Ring, is_last: impl Fn(&str) -> bool) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        while let Some(event) = ring.next_event().unwrap() {
            let text = match event {
                Event::Received(slot, received) => {
                    let text = String::from_utf8_lossy(ring.bytes(&received)).into_owned();
                    ring.release(received);
                    format!("{slot}: {text}")
                }
                other => format!("{other:?}"),
            };
            all.push(text);
            if all.last().is_some_and(|text| is_last(text)) {
                return all;
            }
        }
        ring.wait(None).unwrap();
    }
}

/// Creates a ring; `None` with a notice if this machine forbids it, for example a container, unless
/// `RIOPS_TEST_ALL` is set.
fn ring(connections: u32) -> Option<Ring> {
    let forbidden = [Errno::PERM, Errno::INVAL, Errno::NOSYS];
    match probe() {
        Err(error)
            if Errno::from_io_error(&error).is_some_and(|errno| forbidden.contains(&errno))
                && std::env::var_os("RIOPS_TEST_ALL").is_none() =>
        {
            eprintln!("skipped: io_uring is not available: {error}");
            None
        }
        probed => {
            probed.unwrap();
            Some(Ring::new(connections).unwrap())
        }
    }
}

/// Held by tests with more connections than send buffers: together they would exceed the usual limit of 1,024 open files.
static MANY_CONNECTIONS: Mutex<()> = Mutex::new(());

fn pair(ring: &mut Ring, slot: u32) -> (UnixStream, UnixStream) {
    let (near, far) = UnixStream::pair().unwrap();
    ring.attach(slot, near.as_fd()).unwrap();
    (near, far)
}

#[test]
fn a_refused_message_is_reported_although_the_peer_waits_for_it() {
    let Some(mut ring) = ring(1) else { return };
    let (_near, mut far) = pair(&mut ring, 0);
    assert_eq!(ring.send(0, b"first").unwrap(), 5);
    assert_eq!(ring.immediate, 1);
    assert_eq!(ring.send(0, b"second").unwrap(), 0);
    assert_eq!(ring.send(0, b"second").unwrap(), 0);
    // The wait would otherwise end by its timeout only.
    assert_eq!(ring.immediate, 0);
    assert_eq!(events_until(&mut ring, |event| event.starts_with("Sent")), ["Sent(0)"]);
    assert_eq!(ring.send(0, b"second").unwrap(), 6);
    ring.wait(Some(Duration::ZERO)).unwrap();
    let mut received = [0; 11];
    far.read_exact(&mut received).unwrap();
    assert_eq!(&received, b"firstsecond");
}

#[test]
fn a_wait_does_not_wait_for_sends_that_have_completed() {
    let Some(mut ring) = ring(40) else { return };
    let _ends: Vec<_> = (0..40).map(|slot| pair(&mut ring, slot)).collect();
    for slot in 0..40 {
        assert_eq!(ring.send(slot, b"x").unwrap(), 1);
    }
    assert!(ring.next_event().unwrap().is_none());
    assert_eq!(ring.immediate, 40 - SENDS_MAX);
    // Submits the others, one of them on the connection that it ends.
    ring.detach(39).unwrap();
    assert!(ring.next_event().unwrap().is_none());
    assert_eq!(ring.immediate, 0);
}

#[test]
fn user_data_round_trips() {
    for kind in [Kind::Receive, Kind::Send, Kind::Watch, Kind::Other] {
        let origin = Origin { kind, buffer: 0xabc, generation: 0xfedc, slot: 0x8765_4321 };
        assert_eq!(Origin::unpack(origin.pack()), origin);
    }
}

#[test]
fn sends_and_receives_on_several_connections() {
    let Some(mut ring) = ring(3) else { return };
    let mut ends: Vec<_> = (0..3).map(|slot| pair(&mut ring, slot)).collect();
    for (slot, (_, far)) in (0..).zip(&mut ends) {
        assert_eq!(ring.send(slot, b"question").unwrap(), 8);
        // One message at a time.
        assert_eq!(ring.send(slot, b"next").unwrap(), 0);
        events_until(&mut ring, |text| text == format!("Sent({slot})"));
        let mut read = [0; 8];
        far.read_exact(&mut read).unwrap();
        assert_eq!(&read, b"question");
        far.write_all(b"answer").unwrap();
        events_until(&mut ring, |text| text == format!("{slot}: answer"));
        far.write_all(b"more").unwrap();
        assert_eq!(events_until(&mut ring, |_| true), [format!("{slot}: more")]);
    }
}

#[test]
fn received_bytes_come_before_the_end_of_the_stream_also_if_a_send_fails() {
    let Some(mut ring) = ring(1) else { return };
    let (_near, mut far) = pair(&mut ring, 0);
    far.write_all(b"the last words").unwrap();
    drop(far);
    assert_eq!(ring.send(0, b"too late").unwrap(), 8);
    assert_eq!(
        events_until(&mut ring, |text| text == "Closed(0)"),
        ["0: the last words", "Closed(0)"]
    );
}

#[test]
fn a_message_larger_than_the_buffers_is_sent_in_pieces_while_the_peer_reads() {
    let Some(mut ring) = ring(1) else { return };
    let (_near, mut far) = pair(&mut ring, 0);
    let message: Vec<u8> = (0..3_000_000u32).map(|value| value.to_le_bytes()[0]).collect();
    let length = message.len();
    let reader = std::thread::spawn(move || {
        let mut read = vec![0; length];
        far.read_exact(&mut read).unwrap();
        (read, far)
    });
    let mut rest = message.as_slice();
    while !rest.is_empty() {
        let count = ring.send(0, rest).unwrap();
        rest = rest.split_at(count).1;
        if count == 0 {
            events_until(&mut ring, |text| text == "Sent(0)");
        }
    }
    while ring.slots[0].sending.is_some() {
        ring.wait(None).unwrap();
        assert!(ring.next_event().unwrap().is_none());
    }
    assert!(reader.join().unwrap().0 == message);
}

#[test]
fn receives_more_than_all_buffers_hold() {
    let Some(mut ring) = ring(1) else { return };
    let (_near, mut far) = pair(&mut ring, 0);
    let writer = std::thread::spawn(move || far.write_all(&vec![b'x'; 4_000_000]).unwrap());
    let mut count = 0;
    while count < 4_000_000 {
        // Released only after the turn, so that the kernel runs out of buffers.
        ring.wait(None).unwrap();
        let mut held = Vec::new();
        while let Some(event) = ring.next_event().unwrap() {
            match event {
                Event::Received(0, received) => held.push(received),
                Event::Closed(0) => {}
                other => panic!("{other:?}"),
            }
        }
        for received in held {
            count += ring.bytes(&received).len();
            ring.release(received);
        }
    }
    writer.join().unwrap();
}

#[test]
fn a_replaced_connection_has_no_more_events_and_is_closed() {
    let Some(mut ring) = ring(1) else { return };
    for round in 0..300 {
        let (near, mut far) = pair(&mut ring, 0);
        far.write_all(b"old").unwrap();
        if round % 2 == 0 {
            ring.wait(None).unwrap();
        }
        ring.send(0, b"question").unwrap();
        ring.detach(0).unwrap();
        drop(near);
        assert!(ring.next_event().unwrap().is_none());
        ring.wait(Some(Duration::ZERO)).unwrap();
        // The kernel holds no reference to the socket, so its peer sees the end of the stream.
        let mut left = Vec::new();
        let _ = far.read_to_end(&mut left);
        let (_near, mut far) = pair(&mut ring, 0);
        far.write_all(b"new").unwrap();
        assert_eq!(events_until(&mut ring, |_| true), ["0: new"], "{round}");
        ring.detach(0).unwrap();
    }
}

#[test]
fn connections_without_a_send_buffer_are_told_when_one_is_free() {
    // More connections than send buffers.
    let count = u32::from(BUFFERS_MAX) + 10;
    let _alone = MANY_CONNECTIONS.lock();
    let Some(mut ring) = ring(count) else { return };
    let ends: Vec<_> = (0..count).map(|slot| pair(&mut ring, slot)).collect();
    let sent: Vec<usize> = (0..count).map(|slot| ring.send(slot, b"x").unwrap()).collect();
    assert_eq!(sent.iter().sum::<usize>(), usize::from(BUFFERS_MAX));
    let mut told = Vec::new();
    while told.len() < 10 {
        match ring.next_event().unwrap() {
            Some(Event::Sent(slot)) => told.push(slot),
            Some(other) => panic!("{other:?}"),
            None => ring.wait(None).unwrap(),
        }
    }
    for slot in u32::from(BUFFERS_MAX)..count {
        assert!(told.contains(&slot));
        assert_eq!(ring.send(slot, b"x").unwrap(), 1);
    }
    drop(ends);
}

#[test]
fn a_replaced_connection_takes_no_send_buffer_from_waiting_connections() {
    let count = u32::from(BUFFERS_MAX) + 3;
    let _alone = MANY_CONNECTIONS.lock();
    let Some(mut ring) = ring(count) else { return };
    let ends: Vec<_> = (0..count).map(|slot| pair(&mut ring, slot)).collect();
    let waiting = u32::from(BUFFERS_MAX)..count;
    for slot in (0..count).chain(waiting.clone()).chain(waiting.clone()) {
        ring.send(slot, b"x").unwrap();
    }
    // A connection waits once, however often it has tried to send.
    assert_eq!(ring.starved.len(), 3);
    // One sends through a new connection when its turn has come, and one not at all.
    let mut slots = waiting;
    let (first, second, last) = (slots.next(), slots.next(), slots.next().unwrap());
    let _replaced = pair(&mut ring, first.unwrap());
    ring.detach(second.unwrap()).unwrap();
    assert_eq!(events_until(&mut ring, |_| true), [format!("Sent({last})")]);
    assert_eq!(ring.send(last, b"x").unwrap(), 1);
    assert!(ring.starved.is_empty());
    drop(ends);
}

#[test]
fn a_connection_is_closed_although_a_send_waits_for_its_peer() {
    let Some(mut ring) = ring(1) else { return };
    let (near, mut far) = pair(&mut ring, 0);
    // More than the socket buffers.
    let message = vec![b'x'; 60_000];
    for _ in 0..100 {
        ring.send(0, &message).unwrap();
        ring.wait(Some(Duration::ZERO)).unwrap();
        while ring.next_event().unwrap().is_some() {}
    }
    assert_eq!(ring.send(0, &message).unwrap(), 0);
    ring.detach(0).unwrap();
    drop(near);
    ring.wait(Some(Duration::ZERO)).unwrap();
    // Ends only when the kernel holds no reference to the socket.
    assert!(far.read_to_end(&mut Vec::new()).unwrap() < 100 * message.len());
}

#[test]
fn reports_a_readable_descriptor_once_and_waits_no_longer_than_the_timeout() {
    let Some(mut ring) = ring(1) else { return };
    let (near, mut far) = UnixStream::pair().unwrap();
    ring.watch(&near).unwrap();
    ring.wait(Some(Duration::from_millis(1))).unwrap();
    assert!(ring.next_event().unwrap().is_none());
    far.write_all(b"x").unwrap();
    assert_eq!(events_until(&mut ring, |_| true), ["Readable"]);
    ring.wait(Some(Duration::ZERO)).unwrap();
    assert!(ring.next_event().unwrap().is_none());
    ring.watch(&near).unwrap();
    assert_eq!(events_until(&mut ring, |_| true), ["Readable"]);
}

#[test]
fn a_connection_without_a_slot_is_an_error() {
    let Some(mut ring) = ring(1) else { return };
    let (near, _far) = UnixStream::pair().unwrap();
    assert_eq!(ring.attach(1, near.as_fd()).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    assert_eq!(ring.send(0, b"x").unwrap_err().kind(), io::ErrorKind::NotConnected);
}
