/* Those who queue and those who try meet at one mutex, and queue nodes are
 * given back once each: CLH and the big locks let a try_lock in round the
 * lock. */
#include "check.h"

#define THREADS 4
#define ROUNDS 20000

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER,
                       c = PTHREAD_MUTEX_INITIALIZER;
static long count_a, count_b;
/* What these must come to. */
static long entered_a, entered_b;

static void entered(long *counter)
{
    __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

/* Waits at `a` for one who came by trylock; then holds two at a time. */
static void *queue(void *unused)
{
    CHECK(pthread_mutex_lock(&a), 0);
    CHECK(pthread_mutex_lock(&b), 0);
    CHECK(pthread_mutex_unlock(&a), 0);
    CHECK(pthread_mutex_lock(&c), 0);
    CHECK(pthread_mutex_unlock(&b), 0);
    CHECK(pthread_mutex_unlock(&c), 0);
    return unused;
}

static void one_after_the_other(void)
{
    for (int i = 0; i < 8; i++) {
        pthread_t thread[2];
        CHECK(pthread_mutex_trylock(&a), 0);
        for (int t = 0; t < 2; t++)
            CHECK(pthread_create(&thread[t], NULL, queue, NULL), 0);
        usleep(20000);
        CHECK(pthread_mutex_unlock(&a), 0);
        for (int t = 0; t < 2; t++)
            CHECK(pthread_join(thread[t], NULL), 0);
    }
}

static void *mix(void *number)
{
    unsigned seed = (unsigned)(long)number;
    for (int i = 0; i < ROUNDS; i++) {
        if (rand_r(&seed) % 2)
            CHECK(pthread_mutex_lock(&a), 0);
        else if (pthread_mutex_trylock(&a) != 0)
            continue;
        count_a++;
        entered(&entered_a);
        if (rand_r(&seed) % 4 == 0 && pthread_mutex_trylock(&b) == 0) {
            count_b++;
            entered(&entered_b);
            CHECK(pthread_mutex_unlock(&a), 0);
            CHECK(pthread_mutex_unlock(&b), 0);
        } else {
            CHECK(pthread_mutex_unlock(&a), 0);
        }
        if (rand_r(&seed) % 4 == 0) {
            CHECK(pthread_mutex_lock(&b), 0);
            count_b++;
            entered(&entered_b);
            CHECK(pthread_mutex_unlock(&b), 0);
        }
    }
    return NULL;
}

int main(void)
{
    one_after_the_other();
    pthread_t thread[THREADS];
    for (long t = 0; t < THREADS; t++)
        CHECK(pthread_create(&thread[t], NULL, mix, (void *)(t + 1)), 0);
    for (int t = 0; t < THREADS; t++)
        CHECK(pthread_join(thread[t], NULL), 0);
    CHECK(count_a, entered_a);
    CHECK(count_b, entered_b);
    /* Whoever comes next finds them free. */
    CHECK(pthread_mutex_trylock(&a), 0);
    CHECK(pthread_mutex_trylock(&b), 0);
    CHECK(pthread_mutex_unlock(&b), 0);
    CHECK(pthread_mutex_unlock(&a), 0);
    CHECK(pthread_mutex_destroy(&a), 0);
    puts("met");
    return 0;
}
