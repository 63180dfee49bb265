//! Puts, gets and fetch-and-adds of libfabric and UCX between two threads, byte by byte. If
//! `NETDYNO_TEST_LIBRARIES` is set, the libraries must be installed.

#![allow(clippy::unwrap_used, reason = "a test")]

use netdyno_plugin::channel::{Channel, Opening, Place, Transfer, Uses};
use netdyno_plugin::plugin::Plugin;
use netdyno_plugin::site::{build_in, find, find_compiler};
use netdyno_plugin::source::Source;
use std::io::Write;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Bytes of each process's region.
const REGION: usize = (1 << 20) + 64;
/// Offset of the word that is counted in.
const WORD: usize = 1 << 20;
/// The longest wait for the other process.
const LONG: Duration = Duration::from_secs(60);

/// How a channel is opened.
#[derive(Clone, Copy)]
struct How {
    setting: &'static str,
    /// Whether processes sleep while they wait.
    blocks: bool,
    /// Whether the library allocates the memory.
    allocates: bool,
}

/// Returns the initiator of a pair whose target makes progress in a thread of its own until the sender is
/// dropped. Then the receiver gets the target's memory.
fn pair(plugin: &Plugin, how: How) -> (Channel, Vec<u8>, Sender<()>, Receiver<Vec<u8>>) {
    let (say, told) = mpsc::channel();
    let (go_on, stop) = mpsc::channel();
    let (show, memory) = mpsc::channel();
    let mut here = open(plugin, how, 0);
    let address = here.address().unwrap();
    let (plugin, address_here) = (plugin.clone(), address.clone());
    thread::spawn(move || {
        let mut there = open(&plugin, how, 1);
        let region = there.make_region(REGION).unwrap();
        there.write_region(region, 0, &[7; REGION]).unwrap();
        let address = there.address().unwrap();
        say.send((address.clone(), there.key(region).unwrap())).unwrap();
        there.connect(&[address_here, address]).unwrap();
        there.post_receive(0, None, 1).unwrap();
        let until = Instant::now() + LONG;
        while stop.try_recv() != Err(mpsc::TryRecvError::Disconnected) {
            assert_eq!(there.test_receive(0).unwrap(), None);
            assert!(Instant::now() < until, "the test does not end");
            if how.blocks {
                there.block(Duration::from_millis(1)).unwrap();
            }
        }
        let memory = there.read_region(region, 0, REGION).unwrap();
        // The process may end once the memory is shown. The library must not be in use then.
        drop((there, plugin));
        show.send(memory).unwrap();
    });
    let (address_there, key) = told.recv_timeout(LONG).unwrap();
    here.connect(&[address, address_there]).unwrap();
    (here, key, go_on, memory)
}

fn open(plugin: &Plugin, how: How, rank: usize) -> Channel {
    let How { setting, blocks, allocates } = how;
    let opening = Opening {
        place: Place { rank, ranks: 2 },
        slots: 4,
        largest: 64,
        memory: (64, 64),
        uses: Uses::OneSided,
        blocks,
        allocates,
        settings: &[setting.to_owned()],
    };
    Channel::open(plugin.clone(), &opening).unwrap()
}

fn complete(channel: &mut Channel, slot: usize, blocks: bool) {
    let until = Instant::now() + LONG;
    while !channel.test_send(slot).unwrap() {
        assert!(Instant::now() < until, "it does not complete");
        if blocks {
            channel.block(Duration::from_millis(1)).unwrap();
        }
    }
}

/// Puts ranges of odd offsets and lengths, gets them back, and counts in a word behind them.
fn reaches(plugin: &Plugin, how: How) {
    let How { setting, blocks, .. } = how;
    let (mut here, key, go_on, memory) = pair(plugin, how);
    let region = here.make_region(REGION).unwrap();
    let pattern: Vec<u8> = (0..REGION).map(|at| (at % 251) as u8).collect();
    here.write_region(region, 0, &pattern).unwrap();
    let mut expected = vec![7; REGION];
    let whole = Transfer { region, offset: 0, rank: 1, key: &key, key_offset: 0, bytes: 0 };
    for (slot, bytes) in [1, 7, 64, 1000, 4097, 65_537, 500_001].into_iter().enumerate() {
        let (slot, offset, key_offset) = (slot % 4, 3 * bytes % 1001, bytes % 517);
        here.put(slot, &Transfer { offset, key_offset, bytes, ..whole }).unwrap();
        complete(&mut here, slot, blocks);
        here.flush(1).unwrap();
        expected[key_offset..][..bytes].copy_from_slice(&pattern[offset..][..bytes]);
    }
    let bytes = 600_001;
    here.get(2, &Transfer { offset: 5, key_offset: 1, bytes, ..whole }).unwrap();
    complete(&mut here, 2, blocks);
    assert_eq!(here.read_region(region, 5, bytes).unwrap(), expected[1..][..bytes], "{setting}");
    if here.has_fetch_add() {
        count(&mut here, whole, &mut expected, blocks);
    }
    drop(go_on);
    assert!(memory.recv_timeout(LONG).unwrap() == expected, "{setting}: wrong bytes at the target");
    here.deregister(region).unwrap();
}

fn count(here: &mut Channel, whole: Transfer<'_>, expected: &mut [u8], blocks: bool) {
    let word = Transfer { offset: 16, key_offset: WORD, bytes: 8, ..whole };
    let before = u64::from_le_bytes([7; 8]);
    for step in 0..10 {
        here.fetch_add(1, &word, 1 << 33).unwrap();
        complete(here, 1, blocks);
        let fetched = here.read_region(word.region, 16, 8).unwrap();
        assert_eq!(fetched, (before + (step << 33)).to_le_bytes());
    }
    expected[WORD..][..8].copy_from_slice(&(before + (10 << 33)).to_le_bytes());
    assert!(here.fetch_add(1, &Transfer { key_offset: 4, ..word }, 1).is_err(), "not aligned");
    assert!(here.fetch_add(1, &Transfer { bytes: 4, ..word }, 1).is_err(), "no word");
}

/// Returns the layer of a library, or `None` if the library is not installed.
fn plugin(folder: &TempDir, source: &Source) -> Option<Plugin> {
    if let Err(error) = find(source, None) {
        assert!(std::env::var_os("NETDYNO_TEST_LIBRARIES").is_none(), "{error}");
        let _ = writeln!(std::io::stderr(), "SKIPPED: {error}");
        return None;
    }
    let compiler = find_compiler(source, None).unwrap();
    Some(Plugin::load(&build_in(folder.path(), source, &compiler).unwrap()).unwrap())
}

#[test]
fn libfabric_reaches_the_memory_of_others() {
    let folder = TempDir::new().unwrap();
    let Some(plugin) = plugin(&folder, &Source::ofi()) else { return };
    for (setting, blocks) in [("provider=tcp", false), ("provider=tcp", true), ("provider=shm", false)] {
        reaches(&plugin, How { setting, blocks, allocates: false });
    }
}

#[test]
fn ucx_reaches_the_memory_of_others() {
    let folder = TempDir::new().unwrap();
    let Some(plugin) = plugin(&folder, &Source::ucx()) else { return };
    for (setting, blocks, allocates) in [
        ("transports=tcp", false, false),
        ("transports=tcp", true, true),
        ("transports=posix+cma", false, false),
        ("transports=posix+cma", false, true),
    ] {
        reaches(&plugin, How { setting, blocks, allocates });
    }
}
