/* One case of code whose time depends on the front end. The code is made at run time, warmed,
 * and then run REPEATS times in each of 60 parts, between two markers. Prints the ticks of the
 * time-stamp counter for each unit of work, of the fastest part: others may have been
 * interrupted. Then the units in all.
 * Usage: validation CASE SIZE REPEATS */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <x86intrin.h>

/* The markers of crates/code/frontend/include/locklab-marker.h. */
#define BEGIN() __asm__ volatile("nopl 0x6b636f01(%%rax)" ::: "memory")
#define END() __asm__ volatile("nopl 0x6b636f02(%%rax)" ::: "memory")

#define PARTS 60

static unsigned char *code, *at;
static uint64_t state = 88172645463325252u;

static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static void put(const void *bytes, int n) { memcpy(at, bytes, n); at += n; }
static void put32(uint32_t n) { put(&n, 4); }
static void ret(void) { *at++ = 0xc3; }

static void jump(unsigned char *to)
{
    *at++ = 0xe9;
    put32((uint32_t)(to - (at + 4)));
}

static void call(unsigned char *to)
{
    *at++ = 0xe8;
    put32((uint32_t)(to - (at + 4)));
}

/* A chain of dependent complements: a cycle each. Additions of a constant are not: since Golden
 * Cove several of a chain are done in one cycle. Unit: a complement. */
static void clock_code(long size)
{
    for (long n = 0; n < size; n++)
        put("\x48\xf7\xd0", 3);
    ret();
}

/* Jumps over 16 bytes each. Unit: a jump. */
static void jumps(long size)
{
    for (long n = 0; n < size; n++) {
        unsigned char *next = at + 16;
        jump(next);
        at = next;
    }
    ret();
}

/* SIZE KiB of straight code. Unit: a line of 64 bytes, eight instructions. */
static void straight(long size)
{
    for (long n = 0; n < size * 128; n++)
        put("\x0f\x1f\x84\x00\x00\x00\x00\x00", 8);
    ret();
}

/* Functions that call each other, SIZE deep. Unit: a call with its return. */
static void calls(long size)
{
    for (long n = 0; n < size; n++) {
        call(at + 32);
        ret();
        at = code + 32 * (n + 1);
    }
    ret();
}

/* Independent instructions of four bytes. */
static void independent(long size)
{
    for (long n = 0; n < size; n++)
        put("\x0f\x1f\x40\x00", 4);
}

/* 64 calls of functions with SIZE independent instructions: how much of a bubble is hidden by
 * what is before it. Unit: a call with its return. */
static void padded(long size)
{
    unsigned char *function = code + 4096;
    for (long n = 0; n < 64; n++)
        call(function + n * ((4 * size + 32) / 32 * 32));
    ret();
    for (long n = 0; n < 64; n++) {
        at = function + n * ((4 * size + 32) / 32 * 32);
        independent(size);
        ret();
    }
}

/* 16 jumps, then SIZE independent instructions, 16 times. Unit: such a burst. */
static void bursts(long size)
{
    for (long n = 0; n < 16; n++) {
        jumps(16);
        at--; /* without its return */
        independent(size);
    }
    ret();
}

/* 40 stretches of six instructions, 25 bytes, that begin SIZE bytes after an aligned line: from 40
 * on they lie in two of them. Unit: a stretch. */
static void split(long size)
{
    for (long n = 0; n < 40; n++) {
        at = code + 192 * n + (n ? size : 0);
        independent(5);
        if (n < 39)
            jump(code + 192 * (n + 1) + size);
    }
    ret();
}

/* Two reads of the counter with SIZE jumps between. Unit: the difference of the two. */
static void reads(long size)
{
    put("\x0f\x31\x49\x89\xc0", 5);
    jumps(size);
    at--;
    put("\x0f\x31\x4c\x29\xc0\xc3", 6);
}

static uint64_t between;

static void run_reads(void) { between += (uint32_t)((uint64_t(*)(void))code)(); }

/* SIZE functions, one in each line, and jumps to them in turn in an order that is
 * drawn: the lines of cold code. Unit: a function. */
static void scattered(long size)
{
    uint32_t *order = malloc(size * sizeof *order);
    for (long n = 0; n < size; n++)
        order[n] = n;
    for (long n = size - 1; n > 0; n--) {
        long other = draw() % (n + 1);
        uint32_t kept = order[n];
        order[n] = order[other];
        order[other] = kept;
    }
    unsigned char *start = code + 64;
    at = code;
    jump(start + 64 * order[0]);
    for (long n = 0; n < size; n++) {
        at = start + 64 * order[n];
        if (n + 1 < size)
            jump(start + 64 * order[n + 1]);
        else
            ret();
    }
    free(order);
}

typedef void function(void);

/* So many that no predictor keeps them. */
#define CHOICES (1 << 17)
static unsigned char choices[CHOICES];
static function *functions[256];
static volatile long sink;

/* Calls of SIZE functions in an order that is drawn. Unit: a call. */
static void indirect(long size)
{
    for (long n = 0; n < size; n++) {
        at = code + 64 * n;
        functions[n] = (function *)at;
        ret();
    }
    for (long n = 0; n < CHOICES; n++)
        choices[n] = draw() % size;
}

static void run_indirect(void)
{
    for (long n = 0; n < CHOICES; n++)
        functions[choices[n]]();
}

/* Branches of which SIZE in a hundred go the other way. Unit: a branch. */
static void conditional(long size)
{
    for (long n = 0; n < CHOICES; n++)
        choices[n] = (long)(draw() >> 20) % 100 < size;
}

__attribute__((noinline)) static void run_conditional(void)
{
    for (long n = 0; n < CHOICES; n++)
        __asm__ volatile("test %0, %0\n\tjz 1f\n\tnop\n1:" : : "r"(choices[n]) : "cc");
}

int main(int count, char **arguments)
{
    static const struct {
        const char *name;
        void (*make)(long);
        void (*run)(void);
        long units;
    } cases[] = {
        {"clock", clock_code, 0, 1},     {"jumps", jumps, 0, 1},
        {"straight", straight, 0, 16},   {"calls", calls, 0, 1},
        {"padded", padded, 0, -64},      {"bursts", bursts, 0, -16},
        {"split", split, 0, -40},
        {"reads", reads, run_reads, -1}, {"scattered", scattered, 0, 1},
        {"indirect", indirect, run_indirect, 0},
        {"conditional", conditional, run_conditional, 0},
    };
    long size = count == 4 ? atol(arguments[2]) : 0;
    long repeats = count == 4 ? atol(arguments[3]) : 0;
    if (size < 0 || repeats < 1)
        return 2;
    code = mmap(0, 8 << 20, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED)
        return 3;
    at = code;
    for (unsigned n = 0; n < sizeof cases / sizeof *cases; n++) {
        if (strcmp(cases[n].name, arguments[1]))
            continue;
        cases[n].make(size);
        function *run = cases[n].run ? cases[n].run : (function *)code;
        /* Units of each instruction of the case, or, if negative, of all of it. */
        double units = cases[n].units < 0   ? -cases[n].units
                       : cases[n].units > 0 ? (double)cases[n].units * size
                                            : CHOICES;
        double best = 1e30;
        for (int warm = 0; warm < 3; warm++)
            run();
        BEGIN();
        for (int part = 0; part < PARTS; part++) {
            between = 0;
            uint64_t begin = __rdtsc();
            for (long repeat = 0; repeat < repeats; repeat++)
                run();
            uint64_t passed = between ? between : __rdtsc() - begin;
            double ticks = (double)passed / repeats / units;
            best = ticks < best ? ticks : best;
        }
        END();
        printf("%.6f %.0f\n", best, units * repeats * PARTS);
        return 0;
    }
    return 2;
}
