/* Runs a program and refuses one system call to it. Right: the program runs, and is recorded. */
#define _GNU_SOURCE
#include <linux/seccomp.h>
#include <linux/filter.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <stddef.h>
#include <unistd.h>
#include <stdio.h>
#include <stdlib.h>
int main(int c, char **v) { int act = atoi(v[1]) ? SECCOMP_RET_KILL_PROCESS : (SECCOMP_RET_ERRNO | 1); int nr = atoi(v[2]);
 struct sock_filter f[] = { BPF_STMT(BPF_LD|BPF_W|BPF_ABS, offsetof(struct seccomp_data, nr)),
  BPF_JUMP(BPF_JMP|BPF_JEQ|BPF_K, nr, 1, 0), BPF_STMT(BPF_RET|BPF_K, SECCOMP_RET_ALLOW), BPF_STMT(BPF_RET|BPF_K, act) };
 struct sock_fprog p = { sizeof f / sizeof *f, f }; prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); if (prctl(PR_SET_SECCOMP, 2, &p)) perror("seccomp"); execvp(v[3], v + 3); perror("exec"); return 1; }
