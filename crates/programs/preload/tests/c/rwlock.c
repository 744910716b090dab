/* What POSIX and glibc say of rwlocks, and programs rely on. */
#include "check.h"
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

static void *try_read(void *lock)
{
    int result = pthread_rwlock_tryrdlock(lock);
    if (result == 0)
        CHECK(pthread_rwlock_unlock(lock), 0);
    return (void *)(long)result;
}

static void *try_write(void *lock)
{
    int result = pthread_rwlock_trywrlock(lock);
    if (result == 0)
        CHECK(pthread_rwlock_unlock(lock), 0);
    return (void *)(long)result;
}

static void *timed_read(void *lock)
{
    struct timespec soon = in_ms(CLOCK_REALTIME, 20);
    return (void *)(long)pthread_rwlock_timedrdlock(lock, &soon);
}

static void *timed_write(void *lock)
{
    struct timespec soon = in_ms(CLOCK_REALTIME, 20);
    return (void *)(long)pthread_rwlock_timedwrlock(lock, &soon);
}

static void *clock_read(void *lock)
{
    struct timespec soon = in_ms(CLOCK_MONOTONIC, 20);
    return (void *)(long)pthread_rwlock_clockrdlock(lock, CLOCK_MONOTONIC, &soon);
}

static void *clock_write(void *lock)
{
    struct timespec soon = in_ms(CLOCK_MONOTONIC, 20);
    return (void *)(long)pthread_rwlock_clockwrlock(lock, CLOCK_MONOTONIC, &soon);
}

/* Threads that are about to wait. */
static sem_t waits;

static void *late_read(void *lock)
{
    struct timespec later = in_ms(CLOCK_REALTIME, 100000);
    CHECK(sem_post(&waits), 0);
    CHECK(pthread_rwlock_timedrdlock(lock, &later), 0);
    CHECK(pthread_rwlock_unlock(lock), 0);
    return NULL;
}

static void *late_write(void *lock)
{
    struct timespec later = in_ms(CLOCK_MONOTONIC, 100000);
    CHECK(sem_post(&waits), 0);
    CHECK(pthread_rwlock_clockwrlock(lock, CLOCK_MONOTONIC, &later), 0);
    CHECK(pthread_rwlock_unlock(lock), 0);
    return NULL;
}

static void *wait_to_write(void *lock)
{
    CHECK(sem_post(&waits), 0);
    CHECK(pthread_rwlock_wrlock(lock), 0);
    CHECK(pthread_rwlock_unlock(lock), 0);
    return NULL;
}

static void bad_times(pthread_rwlock_t *lock)
{
    struct timespec never = {0, -1}, now = in_ms(CLOCK_MONOTONIC, 20);
    CHECK(pthread_rwlock_timedrdlock(lock, &never), EINVAL);
    CHECK(pthread_rwlock_timedwrlock(lock, &never), EINVAL);
    never.tv_nsec = 1000000000;
    CHECK(pthread_rwlock_timedrdlock(lock, &never), EINVAL);
    CHECK(pthread_rwlock_clockwrlock(lock, CLOCK_MONOTONIC, &never), EINVAL);
    CHECK(pthread_rwlock_clockrdlock(lock, CLOCK_PROCESS_CPUTIME_ID, &now), EINVAL);
    CHECK(pthread_rwlock_clockwrlock(lock, CLOCK_PROCESS_CPUTIME_ID, &now), EINVAL);
}

static void conforms(pthread_rwlock_t *lock)
{
    pthread_t late;
    struct timespec past = in_ms(CLOCK_REALTIME, -1000);

    /* Readers beside readers, and no writer beside them. */
    CHECK(pthread_rwlock_rdlock(lock), 0);
    CHECK(elsewhere(try_read, lock), 0);
    CHECK(elsewhere(try_write, lock), EBUSY);
    CHECK(elsewhere(timed_write, lock), ETIMEDOUT);
    CHECK(elsewhere(clock_write, lock), ETIMEDOUT);
    CHECK(pthread_rwlock_trywrlock(lock), EBUSY);
    CHECK(pthread_rwlock_timedwrlock(lock, &past), ETIMEDOUT);
    bad_times(lock);
    /* A thread may read again: each once more to be released. */
    CHECK(pthread_rwlock_rdlock(lock), 0);
    CHECK(pthread_rwlock_tryrdlock(lock), 0);
    CHECK(pthread_rwlock_timedrdlock(lock, &past), 0);
    CHECK(pthread_rwlock_clockrdlock(lock, CLOCK_REALTIME, &past), 0);
    for (int i = 0; i < 4; i++) {
        CHECK(pthread_rwlock_unlock(lock), 0);
        CHECK(elsewhere(try_write, lock), EBUSY);
    }
    CHECK(pthread_create(&late, NULL, late_write, lock), 0);
    CHECK(sem_wait(&waits), 0);
    usleep(20000);
    CHECK(pthread_rwlock_unlock(lock), 0);
    CHECK(pthread_join(late, NULL), 0);
    CHECK(elsewhere(try_write, lock), 0);

    /* One writer. */
    CHECK(pthread_rwlock_wrlock(lock), 0);
    CHECK(pthread_rwlock_rdlock(lock), EDEADLK);
    CHECK(pthread_rwlock_wrlock(lock), EDEADLK);
    CHECK(pthread_rwlock_tryrdlock(lock), EBUSY);
    CHECK(pthread_rwlock_trywrlock(lock), EBUSY);
    CHECK(pthread_rwlock_timedrdlock(lock, &past), EDEADLK);
    CHECK(pthread_rwlock_timedwrlock(lock, &past), EDEADLK);
    bad_times(lock);
    CHECK(elsewhere(try_read, lock), EBUSY);
    CHECK(elsewhere(try_write, lock), EBUSY);
    CHECK(elsewhere(timed_read, lock), ETIMEDOUT);
    CHECK(elsewhere(timed_write, lock), ETIMEDOUT);
    CHECK(elsewhere(clock_read, lock), ETIMEDOUT);
    CHECK(elsewhere(clock_write, lock), ETIMEDOUT);
    CHECK(pthread_create(&late, NULL, late_read, lock), 0);
    CHECK(sem_wait(&waits), 0);
    usleep(20000);
    CHECK(pthread_rwlock_unlock(lock), 0);
    CHECK(pthread_join(late, NULL), 0);

    /* A free lock need not wait, whatever the time. */
    CHECK(pthread_rwlock_timedrdlock(lock, &past), 0);
    CHECK(pthread_rwlock_unlock(lock), 0);
    CHECK(pthread_rwlock_timedwrlock(lock, &past), 0);
    CHECK(pthread_rwlock_unlock(lock), 0);
    CHECK(pthread_rwlock_clockrdlock(lock, CLOCK_REALTIME, &past), 0);
    CHECK(pthread_rwlock_unlock(lock), 0);
    CHECK(elsewhere(try_write, lock), 0);
}

/* While a writer waits, who reads may read again. (glibc's kind "writer
 * nonrecursive" says that it may not.) */
static void reads_again(pthread_rwlock_t *lock)
{
    pthread_t writer;
    CHECK(pthread_rwlock_rdlock(lock), 0);
    CHECK(pthread_create(&writer, NULL, wait_to_write, lock), 0);
    CHECK(sem_wait(&waits), 0);
    usleep(20000);
    CHECK(pthread_rwlock_rdlock(lock), 0);
    CHECK(pthread_rwlock_tryrdlock(lock), 0);
    for (int i = 0; i < 3; i++)
        CHECK(pthread_rwlock_unlock(lock), 0);
    CHECK(pthread_join(writer, NULL), 0);
}

static void with_attributes(int kind, int shared)
{
    pthread_rwlockattr_t attributes;
    pthread_rwlock_t *lock = malloc(sizeof *lock);
    memset(lock, 0xa5, sizeof *lock);
    CHECK(pthread_rwlockattr_init(&attributes), 0);
    CHECK(pthread_rwlockattr_setkind_np(&attributes, kind), 0);
    CHECK(pthread_rwlockattr_setpshared(&attributes, shared), 0);
    CHECK(pthread_rwlock_init(lock, &attributes), 0);
    conforms(lock);
    if (kind != PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP)
        reads_again(lock);
    CHECK(pthread_rwlock_destroy(lock), 0);
    /* Again on the same memory, without attributes. */
    CHECK(pthread_rwlock_init(lock, NULL), 0);
    conforms(lock);
    CHECK(pthread_rwlock_destroy(lock), 0);
    CHECK(pthread_rwlockattr_destroy(&attributes), 0);
    free(lock);
}

/* Several readers inside at once: each waits there for the others. */
enum { READERS = 4 };
static pthread_barrier_t inside;

static void *meet(void *lock)
{
    CHECK(pthread_rwlock_rdlock(lock), 0);
    pthread_barrier_wait(&inside);
    CHECK(pthread_rwlock_unlock(lock), 0);
    return NULL;
}

static void overlap(pthread_rwlock_t *lock)
{
    pthread_t reader[READERS];
    CHECK(pthread_barrier_init(&inside, NULL, READERS), 0);
    for (int i = 0; i < READERS; i++)
        CHECK(pthread_create(&reader[i], NULL, meet, lock), 0);
    for (int i = 0; i < READERS; i++)
        CHECK(pthread_join(reader[i], NULL), 0);
    CHECK(pthread_barrier_destroy(&inside), 0);
}

/* Readers and writers on two counts that only writers change, together. */
enum { ROUNDS = 3000 };
static long first, second;

static void *mix(void *lock)
{
    for (int i = 0; i < ROUNDS; i++) {
        if (i % 8 == 0) {
            CHECK(pthread_rwlock_wrlock(lock), 0);
            first++;
            second++;
        } else {
            CHECK(pthread_rwlock_rdlock(lock), 0);
            CHECK(first, second);
        }
        CHECK(pthread_rwlock_unlock(lock), 0);
    }
    return NULL;
}

static void exclusion(pthread_rwlock_t *lock)
{
    pthread_t thread[3];
    first = second = 0;
    for (int i = 0; i < 3; i++)
        CHECK(pthread_create(&thread[i], NULL, mix, lock), 0);
    for (int i = 0; i < 3; i++)
        CHECK(pthread_join(thread[i], NULL), 0);
    CHECK(first, 3 * (ROUNDS / 8));
}

/* Many at once, released in any order. */
static void nesting(void)
{
    enum { N = 100 };
    static pthread_rwlock_t lock[N];
    for (int i = 0; i < N; i++)
        CHECK(i % 3 ? pthread_rwlock_rdlock(&lock[i]) : pthread_rwlock_wrlock(&lock[i]), 0);
    for (int i = 0; i < N; i += 2)
        CHECK(pthread_rwlock_unlock(&lock[i]), 0);
    for (int i = 0; i < N; i++)
        CHECK(elsewhere(try_write, &lock[i]), i % 2 ? EBUSY : 0);
    for (int i = 0; i < N; i += 2)
        CHECK(pthread_rwlock_rdlock(&lock[i]), 0);
    for (int i = N - 1; i >= 0; i--)
        CHECK(pthread_rwlock_unlock(&lock[i]), 0);
    for (int i = 0; i < N; i++)
        CHECK(elsewhere(try_write, &lock[i]), 0);
}

/* An address used anew without destroy, as std::shared_mutex does. */
static void reuse(void)
{
    for (int i = 0; i < 5000; i++) {
        pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
        CHECK(pthread_rwlock_rdlock(&lock), 0);
        CHECK(pthread_rwlock_unlock(&lock), 0);
        CHECK(pthread_rwlock_wrlock(&lock), 0);
        CHECK(pthread_rwlock_unlock(&lock), 0);
        CHECK(pthread_rwlock_init(&lock, NULL), 0);
        CHECK(pthread_rwlock_wrlock(&lock), 0);
        CHECK(pthread_rwlock_unlock(&lock), 0);
    }
}

static void *end_reading(void *lock)
{
    CHECK(pthread_rwlock_rdlock(lock), 0);
    return NULL;
}

/* A thread that ends keeps what it read; the next one does not inherit it. */
static void ended_readers(void)
{
    static pthread_rwlock_t lock;
    for (int i = 0; i < 10; i++) {
        elsewhere(end_reading, &lock);
        CHECK(elsewhere(try_read, &lock), 0);
        CHECK(elsewhere(try_write, &lock), EBUSY);
    }
}

/* In memory that another process shares. */
static void between_processes(void)
{
    struct {
        pthread_rwlock_t lock;
        atomic_int entered;
    } *both = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_rwlockattr_t attributes;
    CHECK(pthread_rwlockattr_init(&attributes), 0);
    CHECK(pthread_rwlockattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED), 0);
    CHECK(pthread_rwlock_init(&both->lock, &attributes), 0);
    CHECK(pthread_rwlock_wrlock(&both->lock), 0);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        CHECK(pthread_rwlock_tryrdlock(&both->lock), EBUSY);
        both->entered = 1;
        CHECK(pthread_rwlock_rdlock(&both->lock), 0);
        CHECK(both->entered, 2);
        CHECK(pthread_rwlock_unlock(&both->lock), 0);
        _exit(0);
    }
    while (both->entered != 1)
        usleep(1000);
    usleep(10000);
    both->entered = 2;
    CHECK(pthread_rwlock_unlock(&both->lock), 0);
    int status;
    CHECK(waitpid(child, &status, 0), child);
    CHECK(status, 0);
}

/* A child may use what its thread held when it forked, though others wait for
 * it in the parent. (In glibc's child a writer is another thread.) */
static void forks(void)
{
    static pthread_rwlock_t written, read, other;
    pthread_t writer[2];
    CHECK(pthread_rwlock_wrlock(&written), 0);
    CHECK(pthread_rwlock_rdlock(&read), 0);
    CHECK(pthread_rwlock_rdlock(&read), 0);
    CHECK(pthread_create(&writer[0], NULL, wait_to_write, &written), 0);
    CHECK(pthread_create(&writer[1], NULL, wait_to_write, &read), 0);
    CHECK(sem_wait(&waits), 0);
    CHECK(sem_wait(&waits), 0);
    usleep(20000);
    for (int round = 0; round < 3; round++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(20);
            CHECK(pthread_rwlock_tryrdlock(&written), EBUSY);
            CHECK(elsewhere(try_read, &written), EBUSY);
            CHECK(elsewhere(try_read, &read), 0);
            CHECK(elsewhere(try_write, &read), EBUSY);
            CHECK(pthread_rwlock_unlock(&written), 0);
            CHECK(pthread_rwlock_unlock(&read), 0);
            CHECK(elsewhere(try_write, &read), EBUSY);
            CHECK(pthread_rwlock_unlock(&read), 0);
            conforms(&written);
            conforms(&read);
            reads_again(&other);
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0), child);
        CHECK(status, 0);
    }
    CHECK(pthread_rwlock_unlock(&written), 0);
    CHECK(pthread_rwlock_unlock(&read), 0);
    CHECK(pthread_rwlock_unlock(&read), 0);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_join(writer[i], NULL), 0);
}

int main(int argc, char **argv)
{
    static pthread_rwlock_t readers = PTHREAD_RWLOCK_INITIALIZER,
                            writers = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
    alarm(100);
    CHECK(sem_init(&waits, 0, 0), 0);
    errno = 77;
    conforms(&readers);
    reads_again(&readers);
    overlap(&readers);
    exclusion(&readers);
    conforms(&writers);
    overlap(&writers);
    exclusion(&writers);
    with_attributes(PTHREAD_RWLOCK_PREFER_READER_NP, PTHREAD_PROCESS_PRIVATE);
    with_attributes(PTHREAD_RWLOCK_PREFER_WRITER_NP, PTHREAD_PROCESS_PRIVATE);
    with_attributes(PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP, PTHREAD_PROCESS_PRIVATE);
    with_attributes(PTHREAD_RWLOCK_DEFAULT_NP, PTHREAD_PROCESS_SHARED);
    nesting();
    reuse();
    ended_readers();
    CHECK(errno, 77);
    between_processes();
    if (argc > 1 && strcmp(argv[1], "forks") == 0)
        forks();
    puts("conforms");
    return 0;
}
