/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Finds the disk that may be overwritten, by its serial number: names such as
 * /dev/sda change from boot to boot.
 *
 * It must never give a disk on which anything of somebody else could be: one with
 * partitions, one that is in use, or one whose first and last MiB are neither
 * empty nor begin with a file system that was made here before.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "disk.h"
#include "workloads.h"

#define MIB (1L << 20)
/* Where XFS has its label. */
#define XFS_LABEL 108

/* A short file without the white space around it; its length, or -1. */
static long read_plain(const char *path, char *text, size_t room, size_t skip)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : pread(fd, text, room - 1, skip);
	char *from = text;

	if (fd >= 0)
		close(fd);
	if (n < 0)
		return -1;
	while (n > 0 && (!text[n - 1] || strchr(" \n\t", text[n - 1])))
		n--;
	text[n] = 0;
	while (*from == ' ')
		from++;
	memmove(text, from, strlen(from) + 1);
	return strlen(text);
}

/* The serial number of a disk: of virtio, of NVMe and MMC, or of SCSI and SATA,
 * whose page 80h has four bytes before it. */
static int has_serial(const char *disk, const char *serial)
{
	static const struct {
		const char *file;
		size_t skip;
	} places[] = { { "serial", 0 }, { "device/serial", 0 }, { "device/vpd_pg80", 4 } };
	char path[600], found[300];

	for (size_t at = 0; at < sizeof(places) / sizeof(*places); at++) {
		snprintf(path, sizeof(path), "/sys/block/%s/%s", disk, places[at].file);
		if (read_plain(path, found, sizeof(found), places[at].skip) > 0)
			return !strcmp(found, serial);
	}
	return 0;
}

/* The number of disks with this serial number, and the name of one of them. */
static int find(const char *serial, char *name, size_t room)
{
	DIR *disks = opendir("/sys/block");
	struct dirent *entry;
	int count = 0;

	while (disks && (entry = readdir(disks)))
		if (entry->d_name[0] != '.' && has_serial(entry->d_name, serial)) {
			snprintf(name, room, "%s", entry->d_name);
			count++;
		}
	if (disks)
		closedir(disks);
	return count;
}

static int has_partitions(const char *disk)
{
	char path[600];
	struct dirent *entry;
	struct stat facts;
	DIR *folder;
	int found = 0;

	snprintf(path, sizeof(path), "/sys/block/%s", disk);
	folder = opendir(path);
	while (folder && (entry = readdir(folder))) {
		snprintf(path, sizeof(path), "/sys/block/%s/%s/partition", disk, entry->d_name);
		found |= !stat(path, &facts);
	}
	if (folder)
		closedir(folder);
	return found;
}

static int is_empty(const char *bytes)
{
	return !bytes[0] && !memcmp(bytes, bytes + 1, MIB - 1);
}

const char *scratch_disk(const char *serial)
{
	static char device[300], first[MIB], last[MIB];
	char name[256];
	int count, fd;
	off_t end;

	/* Its driver may still be looking for it. */
	for (int tries = 0; !(count = find(serial, name, sizeof(name))) && tries < 500; tries++)
		usleep(20000);
	if (count != 1)
		fail(count ? "several disks have the serial number %s" :
			     "no disk has the serial number %s", serial);
	snprintf(device, sizeof(device), "/dev/%.250s", name);
	if (has_partitions(name))
		fail("%s, the disk with the serial number %s, has partitions and is not "
		     "overwritten", device, serial);
	/* Refused while it is mounted, or part of another device. */
	fd = open(device, O_RDONLY | O_EXCL | O_CLOEXEC);
	end = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
	if (end < 0)
		fail("cannot open %s alone: %s", device, strerror(errno));
	if (end < 2 * MIB || pread(fd, first, MIB, 0) != MIB ||
	    pread(fd, last, MIB, end - MIB) != MIB)
		fail("cannot read %s", device);
	close(fd);
	if (!memcmp(first, "XFSB", 4) && !strcmp(first + XFS_LABEL, OUR_LABEL))
		return device;
	if (!is_empty(first) || !is_empty(last))
		fail("%s, the disk with the serial number %s, is not empty and is not overwritten; "
		     "empty it by hand (wipefs -a, and dd if=/dev/zero of its first and last MiB)",
		     device, serial);
	return device;
}
