//! Runs both ends of the skeleton in one process, and checks the header's promises about messages.

#![allow(clippy::unwrap_used, reason = "a test")]

use netdyno_plugin::channel::{Arrival, Channel, Opening, Place, Transfer, Uses};
use netdyno_plugin::plugin::Plugin;
use netdyno_plugin::site::{build_in, find_compiler};
use netdyno_plugin::source::Source;
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const SLOTS: usize = 8;

fn plugin(folder: &TempDir) -> Plugin {
    let compiler = find_compiler(&Source::skeleton(), None).expect("a C compiler is needed");
    Plugin::load(&build_in(folder.path(), &Source::skeleton(), &compiler).unwrap()).unwrap()
}

fn opening(rank: usize) -> Opening<'static> {
    let place = Place { rank, ranks: 2 };
    let memory = (SLOTS * 1024, SLOTS * 1024);
    Opening {
        place,
        slots: SLOTS,
        largest: 1 << 20,
        memory,
        uses: Uses::Messages,
        blocks: false,
        allocates: false,
        settings: &[],
    }
}

/// Returns two connected ends with 1 KiB for each slot.
fn pair(folder: &TempDir) -> [Channel; 2] {
    joined(folder, Uses::Messages)
}

fn joined(folder: &TempDir, uses: Uses) -> [Channel; 2] {
    let plugin = plugin(folder);
    let opening = |rank| Opening { uses, ..opening(rank) };
    let mut ends = [0, 1].map(|rank| Channel::open(plugin.clone(), &opening(rank)).unwrap());
    let addresses: Vec<Vec<u8>> = ends.iter_mut().map(|end| end.address().unwrap()).collect();
    for end in &mut ends {
        end.connect(&addresses).unwrap();
        end.set_strides(1024, 1024).unwrap();
    }
    ends
}

fn received(channel: &mut Channel, slot: usize) -> Arrival {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        if let Some(arrival) = channel.test_receive(slot).unwrap() {
            return arrival;
        }
        assert!(Instant::now() < until, "nothing came");
        channel.block(Duration::from_millis(10)).unwrap();
    }
}

#[test]
fn messages_come_whole_and_in_the_order_of_posting() {
    let folder = TempDir::new().unwrap();
    let [mut a, mut b] = pair(&folder);
    assert_eq!((a.place().rank, b.place().rank, a.largest()), (0, 1, 65536));
    assert_eq!(a.description(), "Unix datagram sockets");
    // The order of posting differs from the order of the slots.
    let order = [3, 0, 5, 1];
    for slot in order {
        b.post_receive(slot, Some(0), 1024).unwrap();
    }
    assert_eq!(b.test_receive(3).unwrap(), None);
    for (nth, slot) in [7, 2, 0, 4].into_iter().enumerate() {
        let bytes = 100 * (nth + 1);
        a.to_send(slot, bytes).unwrap().fill(nth as u8);
        a.post_send(slot, 1, bytes).unwrap();
    }
    // The first message fills the first receive, whichever receive is tested first.
    for nth in [2, 0, 1, 3] {
        let slot = order[nth];
        assert_eq!(received(&mut b, slot), Arrival { bytes: 100 * (nth + 1), rank: 0 });
        assert_eq!(b.received(slot, 100).unwrap(), [nth as u8; 100]);
    }
    for slot in [7, 2, 0, 4] {
        assert!(a.test_send(slot).unwrap());
    }
    assert_eq!(a.sends(), 0);
}

#[test]
fn a_receive_that_is_taken_back_leaves_its_place_to_the_next() {
    let folder = TempDir::new().unwrap();
    let [mut a, mut b] = pair(&folder);
    for slot in 0..3 {
        b.post_receive(slot, None, 1024).unwrap();
    }
    assert!(!b.cancel_receive(0).unwrap());
    assert!(b.test_receive(0).is_err());
    for bytes in [10, 20] {
        a.post_send(bytes / 10, 1, bytes).unwrap();
    }
    assert_eq!((received(&mut b, 1).bytes, received(&mut b, 2).bytes), (10, 20));
}

#[test]
fn more_than_the_sockets_hold_is_sent_as_room_comes() {
    const MESSAGES: usize = 5000;
    let folder = TempDir::new().unwrap();
    let [mut a, mut b] = pair(&folder);
    let (mut sent, mut came) = (0, 0);
    b.post_receive(0, Some(0), 1024).unwrap();
    while came < MESSAGES {
        // Posts as many sends as possible while no process receives.
        while sent < MESSAGES && a.test_send(sent % SLOTS).unwrap() {
            a.to_send(sent % SLOTS, 8).unwrap().copy_from_slice(&sent.to_le_bytes());
            a.post_send(sent % SLOTS, 1, 1024).unwrap();
            sent += 1;
        }
        // The last sends progress only while the sender tests them.
        for slot in 0..SLOTS {
            a.test_send(slot).unwrap();
        }
        received(&mut b, 0);
        assert_eq!(b.received(0, 8).unwrap(), came.to_le_bytes());
        came += 1;
        b.post_receive(0, Some(0), 1024).unwrap();
    }
}

#[test]
fn what_goes_wrong_is_told() {
    let folder = TempDir::new().unwrap();
    let settings = ["speed=high".to_owned()];
    let refused = Channel::open(plugin(&folder), &Opening { settings: &settings, ..opening(0) });
    assert_eq!(refused.err().unwrap().to_string(), "skeleton has no settings, and joins two processes");

    let [mut a, mut b] = pair(&folder);
    assert!(
        a.post_send(0, 2, 1).is_err()
            && a.post_send(SLOTS, 1, 1).is_err()
            && a.post_send(0, 1, 1025).is_err()
    );
    b.post_receive(0, Some(0), 10).unwrap();
    a.post_send(1, 1, 11).unwrap();
    let error = loop {
        match b.test_receive(0) {
            Ok(arrival) => assert_eq!(arrival, None),
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("Message too long"), "{error}");

    drop(b);
    let error = a.post_send(2, 1, 1).unwrap_err().to_string();
    assert_eq!(error, "the other process has closed its socket");
}

#[test]
fn registered_memory_is_reached_from_the_other_process() {
    let folder = TempDir::new().unwrap();
    let [mut a, mut b] = joined(&folder, Uses::OneSided);
    assert!(a.plugin().one_sided());
    let (here, there) = (a.register(5000).unwrap(), b.register(3000).unwrap());
    let key = b.key(there).unwrap();
    a.write_region(here, 0, &[1; 5000]).unwrap();
    b.write_region(there, 0, &[2; 3000]).unwrap();
    let transfer = Transfer { region: here, offset: 4000, rank: 1, key: &key, key_offset: 100, bytes: 1000 };
    a.put(3, &transfer).unwrap();
    // The put stays posted until it is tested.
    assert!(
        a.read_region(here, 0, 1).is_err() && a.deregister(here).is_err() && a.put(3, &transfer).is_err()
    );
    assert!(a.test_send(3).unwrap());
    a.flush(1).unwrap();
    let expected = [vec![2; 100], vec![1; 1000], vec![2; 1900]].concat();
    assert_eq!(b.read_region(there, 0, 3000).unwrap(), expected);
    a.get(0, &Transfer { offset: 10, key_offset: 90, bytes: 20, ..transfer }).unwrap();
    assert!(a.test_send(0).unwrap());
    assert_eq!(a.read_region(here, 10, 20).unwrap(), [[2; 10], [1; 10]].concat());

    a.deregister(here).unwrap();
    assert!(a.read_region(here, 0, 1).is_err() && a.key(here).is_err() && a.deregister(here).is_err());
}

#[test]
fn no_transfer_reaches_beyond_its_regions() {
    let folder = TempDir::new().unwrap();
    let [mut a, mut b] = joined(&folder, Uses::OneSided);
    let (here, there) = (a.register(100).unwrap(), b.register(10).unwrap());
    let key = b.key(there).unwrap();
    let transfer = Transfer { region: here, offset: 0, rank: 1, key: &key, key_offset: 0, bytes: 11 };
    for beyond in [
        Transfer { bytes: 101, ..transfer },
        Transfer { offset: usize::MAX, ..transfer },
        Transfer { rank: 2, ..transfer },
    ] {
        assert!(a.get(0, &beyond).is_err() && a.sends() == 0, "{beyond:?}");
    }
    let error = a.put(0, &transfer).unwrap_err().to_string();
    assert_eq!(error, "cannot reach beyond the other region: Numerical result out of range");
    assert_eq!(b.read_region(there, 0, 10).unwrap(), [0x5a; 10]);
    let [mut plain, _b] = pair(&folder);
    let error = plain.register(10).unwrap_err().to_string();
    assert_eq!(error, "skeleton was not opened to register memory");
}

/// The sources are examples, so they must compile without warnings.
#[test]
fn the_sources_that_come_with_netdyno_are_clean() {
    for source in [Source::skeleton(), Source::requests(), Source::mpi()] {
        let folder = TempDir::new().unwrap();
        let compiler = match find_compiler(&source, None) {
            Ok(compiler) => compiler,
            Err(error) => {
                assert_eq!(source.name, "mpi", "{error}");
                eprintln!("SKIPPED: mpi.c was not compiled: {error}");
                continue;
            }
        };
        let (file, built) = (folder.path().join("it.c"), folder.path().join("it.o"));
        std::fs::write(folder.path().join("layer.h"), netdyno_plugin::source::HEADER).unwrap();
        std::fs::write(&file, source.text()).unwrap();
        let strict = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-c"];
        let output = Command::new(compiler).args(strict).arg(&file).arg("-o").arg(&built).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn one_process_registers_a_ground_as_often_as_it_likes() {
    let folder = TempDir::new().unwrap();
    let opening = Opening { place: Place { rank: 0, ranks: 1 }, uses: Uses::Memory, ..opening(0) };
    let mut channel = Channel::open(plugin(&folder), &opening).unwrap();
    assert!(channel.register_ground(0).is_err(), "there is none yet");
    for bytes in [1, 4096, 100_000] {
        channel.renew_ground(0, bytes).unwrap();
        channel.register_ground(0).unwrap();
        channel.touch_ground(0);
        channel.register_ground(0).unwrap();
        channel.deregister_ground(0).unwrap();
        channel.deregister_ground(0).unwrap();
        assert!(channel.deregister_ground(0).unwrap_err().to_string().contains("not registered"));
        // A registration that remains is released when the ground is renewed and when the channel is closed.
        channel.register_ground(0).unwrap();
    }
    assert!(channel.renew_ground(2, 1).is_err() && channel.register_ground(1).is_err());
    let region = channel.register(1).unwrap();
    assert!(channel.key(region).is_err(), "it was opened to register memory alone");
    let mut messages = Channel::open(plugin(&folder), &self::opening(0)).unwrap();
    messages.renew_ground(1, 1).unwrap();
    assert!(messages.register_ground(1).unwrap_err().to_string().contains("not opened to register memory"));
}
