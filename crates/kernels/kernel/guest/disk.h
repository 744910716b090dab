/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The disk of a test machine that may be overwritten.
 */
#ifndef LOCKLAB_DISK_H
#define LOCKLAB_DISK_H

/* The label of file systems that are ours to overwrite. */
#define OUR_LABEL "locklab"

/* The device of the only disk with this serial number; ends by fail() if there is
 * none, or anything is on it that is not ours. */
const char *scratch_disk(const char *serial);

#endif
