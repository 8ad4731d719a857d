/*
 * sim_posix: the file calls of sys/durable*.c, sent to sim_fs.c. Included before anything else in
 * those files (meson.build: -include), so that the code under test is the code that ships.
 */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

int sim_open(const char *path, int flags, ...);
int sim_close(int fd);
ssize_t sim_read(int fd, void *out, size_t length);
ssize_t sim_pread(int fd, void *out, size_t length, off_t at);
ssize_t sim_write(int fd, const void *data, size_t length);
int sim_dprintf(int fd, const char *format, ...) __attribute__((format(printf, 2, 3)));
int sim_ftruncate(int fd, off_t length);
int sim_fsync(int fd);
int sim_fchmod(int fd, mode_t mode);
int sim_flock(int fd, int operation);
int sim_fstat(int fd, struct stat *out);
int sim_stat(const char *path, struct stat *out);
int sim_chmod(const char *path, mode_t mode);
int sim_mkdir(const char *path, mode_t mode);
int sim_unlink(const char *path);
int sim_link(const char *from, const char *to);
int sim_rename(const char *from, const char *to);
DIR *sim_opendir(const char *path);
struct dirent *sim_readdir(DIR *stream);
int sim_closedir(DIR *stream);
pid_t sim_getpid(void);

#ifndef SIM_FS_ITSELF
#define open            sim_open
#define close           sim_close
#define read            sim_read
#define pread           sim_pread
#define write           sim_write
#define dprintf         sim_dprintf
#define ftruncate       sim_ftruncate
#define fsync           sim_fsync
#define fchmod          sim_fchmod
#define flock(fd, how)  sim_flock(fd, how)
#define fstat           sim_fstat
#define stat(path, to)  sim_stat(path, to)
#define lstat(path, to) sim_stat(path, to) /* there are no links */
#define chmod           sim_chmod
#define mkdir           sim_mkdir
#define unlink          sim_unlink
#define link            sim_link
#define rename          sim_rename
#define opendir         sim_opendir
#define readdir         sim_readdir
#define closedir        sim_closedir
#define getpid          sim_getpid
#endif
