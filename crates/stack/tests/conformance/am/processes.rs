//! More processes than this machine has cores, each connected with every other one.

use crate::common::process::{Child, Parent, argument, from_hex, role, to_hex};
use crate::common::traffic::Traffic;
use crate::common::{Deadline, TIMEOUT, Transport, seed};
use fastrand::Rng;
use netdyno_stack::am::Endpoint;

const PROCESSES: usize = 6;
const MESSAGES: u64 = 2_000;
const MOST: usize = 128;

pub fn child_process(transport: &Transport) {
    let Some((role, parent)) = role() else { return };
    let (seed, me) = (argument(&role, 1), argument(&role, 2));
    one_of_many(transport, &parent, seed, me);
}

/// Runs one process: sends to all others, and polls until the parent closes the pipe.
fn one_of_many(transport: &Transport, parent: &Parent, seed: u64, me: usize) {
    let config = transport.config().window(16).medium_bytes(MOST as u32).peer_timeout(TIMEOUT);
    let mut endpoint = Endpoint::new(Traffic::handlers(), config).unwrap();
    let others: Vec<usize> = (0..PROCESSES).filter(|&other| other != me).collect();
    let ports: Vec<_> = others.iter().map(|_| endpoint.open_port(transport.wire).unwrap()).collect();
    let addresses: Vec<_> = ports.iter().map(|port| to_hex(&port.address())).collect();
    parent.say(&addresses.join(" "));
    let theirs = parent.hear();
    let peers: Vec<_> = ports
        .into_iter()
        .zip(theirs.split(' '))
        .map(|(port, address)| endpoint.connect(port, &from_hex(address)).unwrap())
        .collect();
    parent.say("connected");
    assert_eq!(parent.hear(), "go");

    let mut traffic = Traffic::new(seed, me, MOST, others);
    let mut rng = Rng::with_seed(seed ^ me as u64);
    let deadline = Deadline::after(TIMEOUT);
    for _ in 0..MESSAGES * peers.len() as u64 {
        let at = rng.usize(..peers.len());
        // A peer that has all its messages is skipped for the next one.
        let peer = (0..peers.len())
            .map(|step| peers[(at + step) % peers.len()])
            .find(|&peer| traffic.sent(peer) < MESSAGES)
            .unwrap();
        traffic.send(&mut endpoint, peer).unwrap();
        deadline.check("sending to all");
    }
    let has_all = |endpoint: &Endpoint<Traffic>, traffic: &Traffic| {
        traffic.is_answered()
            && peers.iter().all(|&peer| traffic.received(peer) == MESSAGES && endpoint.in_flight(peer) == 0)
    };
    while !has_all(&endpoint, &traffic) {
        deadline.check("receiving from all");
        if endpoint.poll(&mut traffic).unwrap() == 0 {
            endpoint.idle(TIMEOUT);
        }
    }
    parent.say("done");
    // Others may still wait for credits or acknowledgements.
    while !parent.is_gone() {
        let _ = endpoint.poll(&mut traffic);
        std::thread::sleep(std::time::Duration::from_micros(100));
    }
    assert!(has_all(&endpoint, &traffic), "nothing came after the last message");
}

pub fn all_to_all_among_more_processes_than_cores(transport: &Transport) {
    let seed = seed();
    let mut children: Vec<_> = (0..PROCESSES)
        .map(|me| Child::start(&transport.path_of(module_path!()), &format!("one-of-many {seed} {me}")))
        .collect();
    // The address of `i` to which `j` connects.
    let said: Vec<Vec<String>> =
        children.iter().map(|child| child.hear().split(' ').map(str::to_owned).collect()).collect();
    let place_among_others = |me: usize, other: usize| if other < me { other } else { other - 1 };
    for (me, child) in children.iter_mut().enumerate() {
        let for_me: Vec<&str> = (0..PROCESSES)
            .filter(|&other| other != me)
            .map(|other| said[other][place_among_others(other, me)].as_str())
            .collect();
        child.tell(&for_me.join(" "));
    }
    for child in &children {
        assert_eq!(child.hear(), "connected");
    }
    for child in &mut children {
        child.tell("go");
    }
    for child in &children {
        assert_eq!(child.hear(), "done");
    }
    children.into_iter().for_each(Child::join);
}
