//! Active Messages: the suites, the transports that they run over, and tests of one wire.

mod bulk;
mod bulk_kills;
mod bulk_refusals;
mod corking;
mod delivery;
mod dials;
mod flow;
mod kills;
mod loss;
mod pauses;
mod processes;
mod progress;
mod shm;
mod sleeping;
mod udp;
mod xdp;

macro_rules! suites {
    ($transport:ident) => {
        tests! { am over $transport =>
            bulk:
                of_every_length_at_every_offset, many_in_flight_in_both_directions,
                where_no_message_has_a_payload, between_short_requests, both_sides_may_wait_in_a_transfer,
                the_memory_of_a_get_is_kept_until_it_has_come;
            bulk_refusals:
                ranges_that_are_not_all_inside, memory_that_cannot_be, keys_that_are_none,
                keys_that_were_forged, the_key_of_another_endpoint, keys_of_memory_that_was_deregistered,
                without_handlers_nothing_is_begun, memory_that_was_deregistered_since,
                memory_that_is_deregistered_while_in_use,
                memory_that_is_deregistered_before_a_store_is_due, memory_outlives_its_endpoint,
                a_question_that_nobody_answers, memory_may_be_used_by_any_thread;
            corking:
                corked_requests_keep_their_order, corked_requests_wait_no_longer_than_the_next_poll,
                a_full_batch_of_corked_requests_leaves, corked_requests_leave_before_a_sleep,
                corked_requests_leave_before_the_end, a_peer_that_ends_while_corked_requests_wait;
            delivery:
                in_both_directions_between_two_threads,
                with_the_largest_payloads_and_different_ones_at_both_ends, while_both_sides_spin,
                with_polls_of_both_sides_interleaved_in_one_thread, among_24_endpoints_in_4_threads,
                payloads_up_to_the_most_and_none_beyond, the_peer_of_another_endpoint;
            flow:
                a_window_is_full_exactly_when_it_is, a_reply_never_waits, both_sides_may_wait_for_room,
                a_busy_endpoint_gives_every_credit_back,
                unanswered_requests_give_their_credit_back,
                half_a_window_of_unanswered_requests_is_credited_at_once,
                handlers_run_in_poll_and_in_a_request_that_waits, a_waiting_request_answers_its_peer,
                a_peer_that_was_given_up_keeps_nobody_awake,
                a_peer_that_was_given_up_takes_nothing;
            loss:
                child_process, a_stopped_peer_is_silent, a_peer_that_was_stopped_for_less_goes_on,
                time_without_polls_is_not_the_silence_of_a_peer,
                what_was_sent_before_the_end_is_delivered, what_was_answered_before_the_end_is_delivered,
                endpoints_that_close_at_once_do_not_wait_for_each_other,
                a_loss_is_reported_once_and_the_others_go_on,
                many_losses_are_reported_within_the_bound_for_one, a_peer_given_up_as_silent_learns_of_it;
            pauses:
                child_process, a_paused_peer_goes_on_where_it_was;
            processes:
                child_process, all_to_all_among_more_processes_than_cores;
            progress:
                requests_are_answered_while_the_program_computes, both_programs_sleep,
                room_for_requests_without_replies_ends_a_sleep,
                transfers_go_on_while_both_programs_sleep, calls_of_the_program_mix_with_the_thread,
                the_loss_of_a_peer_reaches_the_program;
        }
    };
}

macro_rules! kills {
    ($transport:ident) => {
        tests! { am over $transport =>
            bulk_kills:
                child_process, a_peer_killed_in_a_transfer_is_reported_and_leaves_nothing_behind;
            kills:
                child_process, a_killed_peer_is_reported_and_leaves_nothing_behind;
        }
    };
}

mod over_shm {
    suites!(SHM);
    kills!(SHM);
}
mod over_blocking_shm {
    suites!(BLOCKING_SHM);
    kills!(BLOCKING_SHM);
}
mod over_udp {
    suites!(UDP);
    kills!(UDP);
}
mod over_xdp {
    suites!(XDP);
    kills!(XDP);
}
mod over_bad_udp {
    suites!(BAD_UDP);
}
mod over_bad_xdp {
    suites!(BAD_XDP);
}
mod over_dialled_shm {
    suites!(DIALLED_SHM);
}
mod over_dialled_udp {
    suites!(DIALLED_UDP);
}
