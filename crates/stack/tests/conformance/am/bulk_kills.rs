//! Peers killed during transfers. The test has a process of its own, so that it can count what
//! the process holds before and after. `NETDYNO_KILLS` sets the number of kills.

use crate::common::bulk::{ANSWERED, FETCHED, Origin, QUIET, Seen, Side, config, handlers};
use crate::common::killing::{BOUND, loss, peer_timeout};
use crate::common::process::{Child, argument, from_hex, held, in_own_process, role, to_hex};
use crate::common::{Deadline, TIMEOUT, Transport, seed};
use fastrand::Rng;
use netdyno_stack::am::{AttachError, Endpoint, TransferError, Wire};
use rustix::process::{Pid, Signal, kill_process};
use std::sync::Arc;
use std::time::{Duration, Instant};

const LEN: usize = 1_000_000;

fn endpoint(transport: &Transport) -> Endpoint<Seen> {
    Endpoint::new(handlers(), config(transport).peer_timeout(peer_timeout(transport.wire))).unwrap()
}

/// The work of the survivor when its peer is killed.
#[derive(Clone, Copy, Debug)]
enum Survivor {
    Stores,
    StoresShared,
    Gets,
    /// Lets the peer store and get.
    Serves,
}

const SURVIVORS: [Survivor; 4] = [Survivor::Stores, Survivor::StoresShared, Survivor::Gets, Survivor::Serves];
const ORIGINS: [Origin; 2] = [Origin::Allocated, Origin::Registered];

fn is_lost(error: &TransferError) -> bool {
    matches!(error, TransferError::Lost(_))
}

/// Repeats the transfers of `survivor` until one fails.
fn transfer(side: &mut Side, survivor: Survivor, key: &[u8]) -> TransferError {
    let deadline = Deadline::after(TIMEOUT);
    let Side { endpoint, peer, seen } = side;
    let remote = match endpoint.attach(seen, *peer, key) {
        Ok(remote) => remote,
        Err(AttachError::Lost(lost)) => return lost.into(),
        // The peer's process ended before its memory was mapped.
        Err(AttachError::NotRegistered) => loop {
            deadline.check("the end of a killed peer");
            if let Err(lost) = endpoint.poll(seen) {
                return lost.into();
            }
        },
        Err(error) => panic!("{error}"),
    };
    let local = endpoint.register(vec![0; LEN].into()).unwrap();
    let bytes: Arc<[u8]> = vec![5; LEN].into();
    loop {
        deadline.check("the end of a killed peer");
        let result = match survivor {
            Survivor::Stores => endpoint.store(seen, remote.at(0), &bytes, ANSWERED, []),
            Survivor::StoresShared => endpoint.store_shared(seen, remote.at(0), bytes.clone(), QUIET, []),
            Survivor::Gets => endpoint.get(seen, remote.at(0), local.range(0, LEN), FETCHED, []),
            Survivor::Serves => Ok(()),
        };
        if let Err(error) = result {
            return error;
        }
        if let Err(lost) = endpoint.poll(seen) {
            return lost.into();
        }
        *seen = Seen::default();
    }
}

pub fn child_process(transport: &Transport) {
    let Some((role, parent)) = role() else { return };
    let mut endpoint = endpoint(transport);
    let peer = parent.connect(transport.wire, &mut endpoint);
    let mut side = Side { endpoint, peer, seen: Seen::default() };
    let memory = side.memory(ORIGINS[argument::<usize>(&role, 1)], LEN);
    parent.say(&to_hex(&memory.key()));
    let key = from_hex(&parent.hear());
    let survivor =
        if role[0] == "serves" { Survivor::Serves } else { SURVIVORS[argument::<usize>(&role, 2)] };
    let error = transfer(&mut side, survivor, &key);
    panic!("killed before this: {error}");
}

/// Kills a peer once, and checks what the survivor is told.
fn kill_one(transport: &Transport, survivor: Survivor, at: usize, rng: &mut Rng) {
    let delay = Duration::from_micros(rng.u64(..30_000));
    let childs = rng.usize(..3);
    println!("{survivor:?}, {:?}, killed after {delay:?}", ORIGINS[at]);
    let role = if let Survivor::Serves = survivor { "transfers" } else { "serves" };
    let mut child = Child::start(&transport.path_of(module_path!()), &format!("{role} {at} {childs}"));
    let mut endpoint = endpoint(transport);
    let peer = child.connect(transport.wire, &mut endpoint);
    let mut side = Side { endpoint, peer, seen: Seen::default() };
    let memory = side.memory(ORIGINS[at], LEN);
    let key = from_hex(&child.hear());
    child.tell(&to_hex(&memory.key()));
    let pid = Pid::from_raw(child.pid() as i32).unwrap();
    let (error, killed) = std::thread::scope(|scope| {
        let killer = scope.spawn(move || {
            std::thread::sleep(delay);
            let killed = Instant::now();
            kill_process(pid, Signal::KILL).unwrap();
            killed
        });
        (transfer(&mut side, survivor, &key), killer.join().unwrap())
    });
    let told_after = killed.elapsed();
    assert!(told_after < BOUND, "told after {told_after:?}");
    assert!(is_lost(&error), "{error}");
    let TransferError::Lost(lost) = error else { unreachable!() };
    assert_eq!((lost.peer, lost.loss), (peer, loss(transport.wire)));
    // The survivor's memory is unchanged for other peers. No further transfer with the killed peer
    // starts.
    assert!(side.endpoint.deregister(memory.id()).is_ok());
    child.kill();
}

pub fn a_peer_killed_in_a_transfer_is_reported_and_leaves_nothing_behind(transport: &Transport) {
    if !in_own_process(transport, a_peer_killed_in_a_transfer_is_reported_and_leaves_nothing_behind) {
        return;
    }
    let kills: usize = std::env::var("NETDYNO_KILLS").map_or(16, |text| text.parse().unwrap());
    let mut rng = Rng::with_seed(seed());
    // Over UDP the peer timeout only runs while requests are outstanding, so a survivor that only serves
    // is not told.
    let survivors = match transport.wire {
        Wire::Shm => SURVIVORS.len(),
        _ => SURVIVORS.len() - 1,
    };
    kill_one(transport, Survivor::Stores, 0, &mut rng);
    let before = held();
    for n in 0..kills {
        kill_one(transport, SURVIVORS[n % survivors], n / survivors % 2, &mut rng);
    }
    assert_eq!(held(), before, "descriptors and mappings");
}
