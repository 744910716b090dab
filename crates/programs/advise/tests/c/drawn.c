/* A program that is drawn from a seed: threads that compute, take mutexes (also within one
   another), tokens of semaphores, and a lock made of a mutex and a condition; that hand over
   items, and meet at a barrier. Each does as many rounds as the others, and takes mutexes in
   the order of their numbers, so that it ends.
       drawn SEED [ROUNDS] */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum act { WORK, HOLD, NEST, TOKEN, MADE, ACTS };
#define MOST_THREADS 5
#define MOST_ACTS 6

static unsigned long long state;
static int draw(int below) {
    state ^= state << 13; state ^= state >> 7; state ^= state << 17;
    return (int)((state >> 20) % (unsigned)below);
}

struct step { enum act act; int first, second, work; };
struct role { struct step steps[MOST_ACTS]; int count, number; };

static struct role roles[MOST_THREADS];
static int threads, rounds, hands_over, meets;
static pthread_mutex_t mutexes[4];
static sem_t tokens;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER, queue = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t given = PTHREAD_COND_INITIALIZER, filled = PTHREAD_COND_INITIALIZER,
                      emptied = PTHREAD_COND_INITIALIZER;
static int taken, items;
static pthread_barrier_t barrier;

static void work(int loops) { for (volatile int i = 0; i < loops; i++); }

static void take(void) {
    pthread_mutex_lock(&guard);
    while (taken) pthread_cond_wait(&given, &guard);
    taken = 1;
    pthread_mutex_unlock(&guard);
}

static void give(void) {
    pthread_mutex_lock(&guard);
    taken = 0;
    pthread_cond_signal(&given);
    pthread_mutex_unlock(&guard);
}

static void put(void) {
    pthread_mutex_lock(&queue);
    while (items == 4) pthread_cond_wait(&emptied, &queue);
    items++;
    pthread_cond_signal(&filled);
    pthread_mutex_unlock(&queue);
}

static void get(void) {
    pthread_mutex_lock(&queue);
    while (items == 0) pthread_cond_wait(&filled, &queue);
    items--;
    pthread_cond_signal(&emptied);
    pthread_mutex_unlock(&queue);
}

static void *run(void *of) {
    struct role *role = of;
    for (int round = 0; round < rounds; round++) {
        for (int at = 0; at < role->count; at++) {
            struct step *step = &role->steps[at];
            switch (step->act) {
            case HOLD:
                pthread_mutex_lock(&mutexes[step->first]);
                work(step->work);
                pthread_mutex_unlock(&mutexes[step->first]);
                break;
            case NEST:
                pthread_mutex_lock(&mutexes[step->first]);
                pthread_mutex_lock(&mutexes[step->second]);
                work(step->work);
                pthread_mutex_unlock(&mutexes[step->second]);
                pthread_mutex_unlock(&mutexes[step->first]);
                break;
            case TOKEN: sem_wait(&tokens); work(step->work); sem_post(&tokens); break;
            case MADE: take(); work(step->work); give(); break;
            default: work(step->work);
            }
            work(300);
        }
        if (hands_over && role->number == 0) put();
        if (hands_over && role->number == 1) get();
        if (meets && round % 64 == 0) pthread_barrier_wait(&barrier);
    }
    return 0;
}

int main(int argc, char **argv) {
    state = 88172645463325252ull ^ ((unsigned long long)atoi(argc > 1 ? argv[1] : "1") * 2654435769u);
    for (int i = 0; i < 8; i++) draw(2);
    rounds = argc > 2 ? atoi(argv[2]) : 4000;
    threads = 2 + draw(MOST_THREADS - 1);
    hands_over = draw(3) == 0;
    meets = draw(4) == 0;
    int locks = 2 + draw(3);
    for (int i = 0; i < 4; i++) pthread_mutex_init(&mutexes[i], 0);
    sem_init(&tokens, 0, 1 + draw(2));
    pthread_barrier_init(&barrier, 0, threads);
    int alike = draw(2);
    for (int i = 0; i < threads; i++) {
        struct role *role = &roles[i];
        if (alike && i > 0) {
            *role = roles[0];
        } else {
            role->count = 2 + draw(MOST_ACTS - 1);
            for (int at = 0; at < role->count; at++) {
                int first = draw(locks - 1);
                role->steps[at] = (struct step){draw(ACTS), first, first + 1 + draw(locks - first - 1),
                                                100 + draw(2000)};
            }
            /* Whatever else is drawn, they want one mutex. */
            role->steps[0] = (struct step){HOLD, 0, 0, 200 + draw(1000)};
        }
        role->number = i;
    }
    pthread_t all[MOST_THREADS];
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int i = 0; i < threads; i++) pthread_create(&all[i], 0, run, &roles[i]);
    for (int i = 0; i < threads; i++) pthread_join(all[i], 0);
    clock_gettime(CLOCK_MONOTONIC, &to);
    double seconds = (to.tv_sec - from.tv_sec) + (to.tv_nsec - from.tv_nsec) / 1e9;
    printf("rate %.0f rounds/s of %d threads\n", threads * rounds / seconds, threads);
    return 0;
}
