/* Threads whose use of locks is known: what a recording has to say of them. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t other = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int ready;

/* What the recorder asks for a thread's switches. The first time takes ten
   milliseconds, as if another program had the CPU meanwhile: that is not what
   it costs to ask. */
int getrusage(__rusage_who_t who, struct rusage *usage)
{
    static int asked;
    if (!__atomic_exchange_n(&asked, 1, __ATOMIC_RELAXED)) {
        struct timespec rest = {.tv_nsec = 10000000};
        syscall(SYS_nanosleep, &rest, 0);
    }
    return syscall(SYS_getrusage, who, usage);
}

void take(int times)
{
    for (int i = 0; i < times; i++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
}

static void *take_hundred(void *unused)
{
    take(100);
    return unused;
}

static void release(void *lock)
{
    pthread_mutex_unlock(lock);
}

static void *cancelled(void *unused)
{
    pthread_mutex_lock(&other);
    __atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
    pthread_cleanup_push(release, &other);
    for (;;)
        pthread_cond_wait(&condition, &other);
    pthread_cleanup_pop(1);
    return unused;
}

static void *take_one(void *unused)
{
    take(1);
    return unused;
}

static void *waits_for_two(void *unused)
{
    pthread_mutex_lock(&mutex);
    __atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
    while (ready != 2)
        pthread_cond_wait(&condition, &mutex);
    pthread_mutex_unlock(&mutex);
    return unused;
}

static pthread_t start(void *(*run)(void *))
{
    pthread_t thread;
    if (pthread_create(&thread, 0, run, 0) != 0)
        abort();
    return thread;
}

/* Until the other thread is in its wait: it holds the lock until then. */
static void until_it_waits(pthread_mutex_t *lock)
{
    while (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE))
        usleep(100);
    pthread_mutex_lock(lock);
    pthread_mutex_unlock(lock);
}

int main(int count, char **words)
{
    const char *what = count > 1 ? words[1] : "";
    if (strcmp(what, "alone") == 0) {
        take(50);
    } else if (strcmp(what, "two") == 0) {
        pthread_t a = start(take_hundred), b = start(take_hundred);
        pthread_join(a, 0);
        pthread_join(b, 0);
    } else if (strcmp(what, "many") == 0) {
        /* More than there are blocks, were each to take one. */
        for (int i = 0; i < 300; i++)
            pthread_join(start(take_hundred), 0);
    } else if (strcmp(what, "hold") == 0) {
        pthread_mutex_lock(&mutex);
        pthread_t thread = start(take_one);
        /* glibc's word is 2 once a thread sleeps for it. */
        while (__atomic_load_n(&mutex.__data.__lock, __ATOMIC_RELAXED) != 2)
            usleep(100);
        pthread_mutex_unlock(&mutex);
        pthread_join(thread, 0);
    } else if (strcmp(what, "condition") == 0) {
        pthread_t thread = start(waits_for_two);
        until_it_waits(&mutex);
        usleep(20000);
        pthread_mutex_lock(&mutex);
        ready = 2;
        pthread_cond_signal(&condition);
        pthread_mutex_unlock(&mutex);
        pthread_join(thread, 0);
    } else if (strcmp(what, "cancel") == 0) {
        pthread_t thread = start(cancelled);
        until_it_waits(&other);
        pthread_cancel(thread);
        pthread_join(thread, 0);
        /* Its clean-up released the mutex. */
        if (pthread_mutex_trylock(&other) != 0)
            return 1;
        pthread_mutex_unlock(&other);
    } else if (strcmp(what, "readers") == 0) {
        pthread_rwlock_rdlock(&rwlock);
        if (pthread_rwlock_tryrdlock(&rwlock) != 0)
            return 1;
        if (pthread_rwlock_trywrlock(&rwlock) != EBUSY)
            return 2;
        pthread_rwlock_unlock(&rwlock);
        pthread_rwlock_unlock(&rwlock);
        pthread_rwlock_wrlock(&rwlock);
        pthread_rwlock_unlock(&rwlock);
    } else if (strcmp(what, "fork") == 0) {
        take(10);
        pid_t child = fork();
        if (child == 0) {
            take(20);
            execl(words[0], words[0], "alone", (char *)0);
            _exit(1);
        }
        int status;
        waitpid(child, &status, 0);
        take(5);
        _exit(status != 0);
    } else if (strcmp(what, "blocks") == 0) {
        /* Twenty milliseconds each, for what is not recorded. */
        struct itimerspec later = {.it_value = {.tv_nsec = 20000000}};
        struct timespec until;
        unsigned long long often;
        sem_t none;
        int timer = timerfd_create(CLOCK_MONOTONIC, 0);
        take(1);
        if (sem_init(&none, 0, 0) || clock_gettime(CLOCK_REALTIME, &until))
            return 1;
        until.tv_nsec += 20000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (sem_timedwait(&none, &until) == 0)
            return 2;
        if (timerfd_settime(timer, 0, &later, 0)
            || read(timer, &often, sizeof often) != sizeof often)
            return 3;
        take(1);
    } else if (strcmp(what, "sleep") == 0) {
        /* Ten milliseconds each. */
        struct timespec rest = {.tv_nsec = 10000000};
        struct timeval until = {.tv_usec = 10000};
        struct epoll_event event;
        int files = epoll_create1(0);
        take(1);
        if (nanosleep(&rest, 0) || clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, 0) || usleep(10000))
            return 1;
        if (poll(0, 0, 10) || ppoll(0, 0, &rest, 0) || select(0, 0, 0, 0, &until)
            || pselect(0, 0, 0, 0, &rest, 0))
            return 2;
        if (epoll_wait(files, &event, 1, 10) || epoll_pwait(files, &event, 1, 10, 0))
            return 3;
        /* These do not wait. */
        if (poll(0, 0, 0) || epoll_wait(files, &event, 1, 0) || sleep(0))
            return 4;
        take(1);
    } else if (strcmp(what, "kill") == 0) {
        take(1000);
        raise(SIGKILL);
    } else if (strcmp(what, "forever") == 0) {
        for (;;)
            take(1000);
    } else if (strcmp(what, "long") == 0) {
        take(400000);
    } else if (strcmp(what, "busy") == 0) {
        /* For a second it does little else, and sleeps to the end at last. */
        struct timespec now, rest = {.tv_nsec = 100000000};
        time_t end;
        clock_gettime(CLOCK_MONOTONIC, &now);
        for (end = now.tv_sec + 2; now.tv_sec < end; clock_gettime(CLOCK_MONOTONIC, &now))
            take(1000);
        nanosleep(&rest, 0);
    }
    (void)!write(1, "output\n", 7);
    return 7;
}
