/* The example radix_sort against MPI: "radix_sort KEYS key|digit". Same keys, same digits. "key" moves each key
 * to its place by MPI_Put; "digit" moves the keys, sorted by their digit, by MPI_Alltoallv. Rank 0 prints the time of the
 * sort in seconds. The exit code is 1 if the result is wrong. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BITS = 8, VALUES = 1 << BITS, WARM = 1 << 16 };
static int me, ranks;
static uint64_t size;

static uint64_t mix(uint64_t z, int shift, uint64_t factor) { return (z ^ (z >> shift)) * factor; }

static uint64_t finish(uint64_t z)
{
    z = mix(mix(z, 30, 0xbf58476d1ce4e5b9), 27, 0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* The word of a stream with this number (SplitMix64), as in the example. */
static uint64_t random_word(uint64_t stream, uint64_t nth)
{
    return finish(finish(stream) + (nth + 1) * 0x9e3779b97f4a7c15);
}

/* The first place of a rank; that of the rank behind the last one is the number of keys. */
static uint64_t first_of(int rank) { return rank * size / ranks; }
static int rank_of(uint64_t place) { return ((place + 1) * ranks - 1) / size; }

static void *array(uint64_t count, size_t bytes)
{
    void *memory = calloc(count ? count : 1, bytes);
    if (!memory) {
        fprintf(stderr, "no memory for %llu keys: sort fewer\n", (unsigned long long)count);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    return memory;
}

/* The counts of all ranks, and from them the place of the first key with each digit of each rank. */
struct order {
    uint64_t counts[VALUES];
    uint64_t *all, *first;
};

static void put_in_order(struct order *order, const uint64_t *keys, uint64_t count, int shift)
{
    uint64_t place = 0;
    memset(order->counts, 0, sizeof order->counts);
    for (uint64_t at = 0; at < count; at++)
        order->counts[keys[at] >> shift & (VALUES - 1)]++;
    MPI_Allgather(order->counts, VALUES, MPI_UINT64_T, order->all, VALUES, MPI_UINT64_T, MPI_COMM_WORLD);
    for (int value = 0; value < VALUES; value++)
        for (int rank = 0; rank < ranks; rank++) {
            order->first[rank * VALUES + value] = place;
            place += order->all[rank * VALUES + value];
        }
}

/* Each key by itself to its place, from one window to the other. */
static void sort_by_key(uint64_t *keys, uint64_t count)
{
    struct order order = { .all = array(ranks * VALUES, 8), .first = array(ranks * VALUES, 8) };
    uint64_t *places[2];
    MPI_Win windows[2];
    for (int nth = 0; nth < 2; nth++) {
        MPI_Win_allocate(count * 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &places[nth], &windows[nth]);
        MPI_Win_lock_all(MPI_MODE_NOCHECK, windows[nth]);
    }
    memcpy(places[0], keys, count * 8);
    for (int shift = 0; shift < 64; shift += BITS) {
        const uint64_t *from = places[shift / BITS % 2];
        MPI_Win to = windows[1 - shift / BITS % 2];
        put_in_order(&order, from, count, shift);
        uint64_t *place = order.first + me * VALUES;
        for (uint64_t at = 0; at < count; at++) {
            uint64_t next = place[from[at] >> shift & (VALUES - 1)]++;
            int rank = rank_of(next);
            MPI_Put(from + at, 1, MPI_UINT64_T, rank, next - first_of(rank), 1, MPI_UINT64_T, to);
        }
        MPI_Win_flush_all(to);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_sync(to);
    }
    memcpy(keys, places[0], count * 8);
    for (int nth = 0; nth < 2; nth++) {
        MPI_Win_unlock_all(windows[nth]);
        MPI_Win_free(&windows[nth]);
    }
}

/* The number of keys with a digit that a rank sends to another one, and the place of the first of them. */
static uint64_t overlap(const struct order *order, int from, int to, int value, uint64_t *begin)
{
    uint64_t first = order->first[from * VALUES + value], end = first + order->all[from * VALUES + value];
    *begin = first > first_of(to) ? first : first_of(to);
    end = end < first_of(to + 1) ? end : first_of(to + 1);
    return end > *begin ? end - *begin : 0;
}

/* The keys of the rank sorted by digit, so that those to a rank are adjacent, and one exchange between all ranks. The keys
 * change between two arrays, and are in the first one after an even number of digits. */
static void sort_by_digit(uint64_t *keys, uint64_t count)
{
    struct order order = { .all = array(ranks * VALUES, 8), .first = array(ranks * VALUES, 8) };
    uint64_t *others = array(count, 8), *memory = others, begin;
    int *sends = array(ranks, sizeof(int)), *send_at = array(ranks, sizeof(int));
    int *receives = array(ranks, sizeof(int)), *receive_at = array(ranks, sizeof(int));
    for (int shift = 0; shift < 64; shift += BITS) {
        uint64_t place[VALUES], sum = 0;
        put_in_order(&order, keys, count, shift);
        for (int value = 0; value < VALUES; value++) {
            place[value] = sum;
            sum += order.counts[value];
        }
        for (uint64_t at = 0; at < count; at++)
            others[place[keys[at] >> shift & (VALUES - 1)]++] = keys[at];
        for (int rank = 0, out = 0, in = 0; rank < ranks; rank++) {
            sends[rank] = receives[rank] = 0;
            for (int value = 0; value < VALUES; value++) {
                sends[rank] += overlap(&order, me, rank, value, &begin);
                receives[rank] += overlap(&order, rank, me, value, &begin);
            }
            send_at[rank] = out;
            receive_at[rank] = in;
            out += sends[rank];
            in += receives[rank];
        }
        MPI_Alltoallv(others, sends, send_at, MPI_UINT64_T, keys, receives, receive_at, MPI_UINT64_T, MPI_COMM_WORLD);
        for (int rank = 0; rank < ranks; rank++) {
            uint64_t *next = keys + receive_at[rank];
            for (int value = 0; value < VALUES; value++) {
                uint64_t here = overlap(&order, rank, me, value, &begin);
                memcpy(others + (here ? begin - first_of(me) : 0), next, here * 8);
                next += here;
            }
        }
        uint64_t *swapped = keys;
        keys = others;
        others = swapped;
    }
    free(memory);
}

/* Whether the keys of all ranks are in order, and as many, with the same sums, as those that were drawn. */
static int is_right(const uint64_t *keys, uint64_t count)
{
    uint64_t sums[2] = { 0, 0 }, expected[2] = { 0, 0 }, *ends = array(ranks * 2, 8);
    uint64_t mine[2] = { count ? keys[0] : 0, count ? keys[count - 1] : 0 };
    int sorted = 1, all;
    for (uint64_t at = 0; at < count; at++) {
        sums[0] += keys[at];
        sums[1] += random_word(keys[at], 0);
        sorted &= at == 0 || keys[at - 1] <= keys[at];
    }
    for (uint64_t nth = first_of(me); nth < first_of(me + 1); nth++) {
        expected[0] += random_word(1, nth);
        expected[1] += random_word(random_word(1, nth), 0);
    }
    MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, expected, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allgather(mine, 2, MPI_UINT64_T, ends, 2, MPI_UINT64_T, MPI_COMM_WORLD);
    for (int rank = 1; rank < ranks; rank++)
        sorted &= ends[2 * rank - 1] <= ends[2 * rank];
    MPI_Allreduce(&sorted, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return all && !memcmp(sums, expected, sizeof sums);
}

/* Uses the ways to the other ranks once, as the example does. */
static void warm_up(void (*sort)(uint64_t *, uint64_t))
{
    uint64_t all = size;
    size = all < WARM ? all : WARM;
    uint64_t count = first_of(me + 1) - first_of(me), *keys = array(count, 8);
    sort(keys, count);
    free(keys);
    size = all;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    size = argc == 3 ? strtoull(argv[1], NULL, 10) : 0;
    if (size < (uint64_t)ranks || (strcmp(argv[2], "key") && strcmp(argv[2], "digit"))) {
        fprintf(stderr, "usage: radix_sort KEYS key|digit, with a key for each rank at least\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    uint64_t count = first_of(me + 1) - first_of(me), *keys = array(count, 8);
    for (uint64_t at = 0; at < count; at++)
        keys[at] = random_word(1, first_of(me) + at);
    void (*sort)(uint64_t *, uint64_t) = strcmp(argv[2], "key") ? sort_by_digit : sort_by_key;
    warm_up(sort);
    MPI_Barrier(MPI_COMM_WORLD);
    double began = MPI_Wtime();
    sort(keys, count);
    MPI_Barrier(MPI_COMM_WORLD);
    double took = MPI_Wtime() - began;
    int right = is_right(keys, count);
    if (me == 0 && right)
        printf("%.9f\n", took);
    if (me == 0 && !right)
        fprintf(stderr, "the result is wrong: report this\n");
    MPI_Finalize();
    return !right;
}
