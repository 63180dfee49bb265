//! Virtual Interfaces: the suites, the transports that they run over, and tests of one wire.

mod connecting;
mod descriptors;
mod end;
mod ending;
mod flags;
mod hostile;
mod kills;
mod lent;
mod operations;
mod processes;
mod protection;
mod shm;
mod stranger;
mod strangers;
mod udp;

macro_rules! suites {
    ($transport:ident) => {
        tests! { vi over $transport =>
            connecting:
                a_client_finds_a_server, a_request_is_rejected,
                vis_that_do_not_fit_together_are_not_connected, nobody_waits, the_time_is_up,
                a_host_that_is_not_there_does_not_answer, a_third_one_asks,
                vis_are_connected_beside_each_other_and_again;
            ending:
                what_was_sent_comes_before_the_end, a_closed_provider_has_sent_everything,
                a_closed_provider_writes_no_descriptors,
                a_disconnection_in_the_midst_of_messages, no_receive_is_posted, a_receive_is_too_short,
                memory_may_not_be_written, memory_is_not_there_any_more,
                memory_goes_in_the_midst_of_a_message,
                the_end_is_heard_by_who_always_finds_something_done, a_vi_that_promises_nothing_goes_on;
            operations:
                every_operation_at_every_reliable_level, every_operation_of_a_vi_that_promises_nothing,
                many_messages_come_once_whole_and_in_their_order,
                what_is_fenced_waits_for_reads_before_it;
            processes:
                child_process, messages_go_to_another_process_and_come_back;
        }
    };
}

macro_rules! protection {
    ($transport:ident) => {
        tests! { vi over $transport =>
            protection:
                memory_of_its_own_that_a_vi_may_not_use_fails_the_descriptor,
                a_receive_into_memory_that_may_not_be_used_fails,
                memory_of_the_peers_that_may_not_be_used_is_not_touched,
                a_denied_read_leaves_the_reads_before_it_alone, both_sides_read_much_and_are_denied,
                a_descriptor_that_is_changed_after_posting_is_the_one_that_was_posted;
        }
    };
}

macro_rules! flags {
    ($transport:ident) => {
        tests! { vi over $transport =>
            flags: no_byte_of_a_write_is_seen_before_those_in_front_of_the_last_ones;
        }
    };
}

macro_rules! kills {
    ($transport:ident) => {
        tests! { vi over $transport =>
            kills:
                child_process, a_killed_peer_breaks_the_vi_and_leaves_nothing_behind;
        }
    };
}

mod over_shm {
    suites!(SHM);
    flags!(SHM);
    protection!(SHM);
    tests! { vi over SHM =>
        descriptors: it_sleeps_and_answers_later;
    }
}
mod over_lent {
    suites!(LENT);
    flags!(LENT);
    kills!(LENT);
    tests! { vi over LENT =>
        lent:
            a_long_message_is_complete_when_the_peer_has_copied_it,
            a_short_send_behind_a_long_one_does_not_wait_for_the_peers_next_call,
            nothing_comes_from_memory_that_was_given_back, memory_comes_and_goes,
            writes_are_checked_by_whoever_has_the_memory;
    }
}
mod over_udp {
    suites!(UDP);
    flags!(UDP);
    protection!(UDP);
    kills!(UDP);
}
mod over_xdp {
    suites!(XDP);
    flags!(XDP);
    protection!(XDP);
    kills!(XDP);
}
mod over_bad_xdp {
    suites!(BAD_XDP);
    protection!(BAD_XDP);
}
mod over_bad_udp {
    suites!(BAD_UDP);
    protection!(BAD_UDP);

    use crate::common::timeout::with_seed;
    use crate::common::transport::{BAD_UDP, Transport};

    type Test = fn(&Transport);

    /// Seeds with which a test has failed once, with the test.
    const KEPT: &[(u64, Test)] = &[
        // A late copy of a rejected request reached the next program that waited.
        (7070276938517440111, super::connecting::a_request_is_rejected),
    ];

    #[test]
    fn seeds_that_failed_once() {
        for (seed, test) in KEPT {
            with_seed(*seed, || test(&BAD_UDP));
        }
    }
}
