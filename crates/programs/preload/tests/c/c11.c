/* What C11 and glibc say of mtx_t and cnd_t. */
#include "check.h"
#include <threads.h>

static int try_lock(void *mutex)
{
    int result = mtx_trylock(mutex);
    if (result == thrd_success)
        CHECK(mtx_unlock(mutex), thrd_success);
    return result;
}

static int timed_lock(void *mutex)
{
    struct timespec soon = in_ms(CLOCK_REALTIME, 20);
    int result = mtx_timedlock(mutex, &soon);
    if (result == thrd_success)
        CHECK(mtx_unlock(mutex), thrd_success);
    return result;
}

static int in_another(int (*f)(void *), void *argument)
{
    thrd_t thread;
    int result;
    CHECK(thrd_create(&thread, f, argument), thrd_success);
    CHECK(thrd_join(thread, &result), thrd_success);
    return result;
}

static void conforms(int type)
{
    mtx_t mutex;
    memset(&mutex, 0xa5, sizeof mutex);
    CHECK(mtx_init(&mutex, type), thrd_success);
    CHECK(mtx_lock(&mutex), thrd_success);
    CHECK(in_another(try_lock, &mutex), thrd_busy);
    CHECK(in_another(timed_lock, &mutex), thrd_timedout);
    struct timespec soon = in_ms(CLOCK_REALTIME, 20), never = {0, -1};
    if (type & mtx_recursive) {
        CHECK(mtx_lock(&mutex), thrd_success);
        CHECK(mtx_trylock(&mutex), thrd_success);
        CHECK(mtx_timedlock(&mutex, &soon), thrd_success);
        for (int i = 0; i < 3; i++) {
            CHECK(mtx_unlock(&mutex), thrd_success);
            CHECK(in_another(try_lock, &mutex), thrd_busy);
        }
    } else {
        CHECK(mtx_trylock(&mutex), thrd_busy);
        CHECK(mtx_timedlock(&mutex, &soon), thrd_timedout);
        CHECK(mtx_timedlock(&mutex, &never), thrd_error);
    }
    CHECK(mtx_unlock(&mutex), thrd_success);
    CHECK(in_another(try_lock, &mutex), thrd_success);
    CHECK(in_another(timed_lock, &mutex), thrd_success);
    if (type & mtx_recursive)
        CHECK(mtx_unlock(&mutex), thrd_error);
    mtx_destroy(&mutex);
}

enum { THREADS = 4, ROUNDS = 5000 };
static mtx_t counted;
static long count;

static int add(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        CHECK(mtx_lock(&counted), thrd_success);
        count++;
        CHECK(mtx_unlock(&counted), thrd_success);
    }
    return 0;
}

static cnd_t turned;
static int turn;

/* Two threads take turns; the last that waits is woken by a broadcast. */
static int take_turns(void *me)
{
    int mine = me != NULL;
    for (int i = 0; i < 200; i++) {
        CHECK(mtx_lock(&counted), thrd_success);
        while (turn != mine)
            CHECK(cnd_wait(&turned, &counted), thrd_success);
        turn = !mine;
        CHECK(i % 2 ? cnd_signal(&turned) : cnd_broadcast(&turned), thrd_success);
        CHECK(mtx_unlock(&counted), thrd_success);
    }
    return 0;
}

int main(void)
{
    alarm(100);
    conforms(mtx_plain);
    conforms(mtx_timed);
    conforms(mtx_plain | mtx_recursive);
    conforms(mtx_timed | mtx_recursive);

    thrd_t thread[THREADS];
    CHECK(mtx_init(&counted, mtx_plain), thrd_success);
    for (int i = 0; i < THREADS; i++)
        CHECK(thrd_create(&thread[i], add, NULL), thrd_success);
    for (int i = 0; i < THREADS; i++)
        CHECK(thrd_join(thread[i], NULL), thrd_success);
    CHECK(count, THREADS * ROUNDS);

    CHECK(cnd_init(&turned), thrd_success);
    CHECK(thrd_create(&thread[0], take_turns, NULL), thrd_success);
    CHECK(thrd_create(&thread[1], take_turns, &turn), thrd_success);
    for (int i = 0; i < 2; i++)
        CHECK(thrd_join(thread[i], NULL), thrd_success);
    struct timespec soon = in_ms(CLOCK_REALTIME, 20);
    CHECK(mtx_lock(&counted), thrd_success);
    CHECK(cnd_timedwait(&turned, &counted, &soon), thrd_timedout);
    CHECK(mtx_trylock(&counted), thrd_busy);
    CHECK(mtx_unlock(&counted), thrd_success);
    cnd_destroy(&turned);
    mtx_destroy(&counted);
    puts("conforms");
    return 0;
}
