/* A disk that loses its power, for one process: preloaded, it keeps beside each file of one folder
 * a copy of what was synced of it, and of nothing else. After the process is killed, the copies are
 * what a disk would hold that had lost its power at that moment and every write that nobody waited
 * for.
 *
 * POWER_FOLDER names the folder (a canonical path without a slash at its end), POWER_COPIES where
 * the copies lie. Only files directly in the folder count; what is mapped into memory does not.
 * POWER_AIM names a file that may say when the power goes: "p.db 40" is with the 40th write to p.db
 * since it says so.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

struct range {
    off_t from, to;
};

struct file {
    char name[NAME_MAX + 1];
    struct range *unsynced;
    size_t count, room;
    unsigned long writes;
    struct file *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct file *files;

static void *real(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) abort();
    return found;
}

/* The name of an open file within the folder; 0 for any other. */
static int name_of(int fd, char name[NAME_MAX + 1]) {
    const char *folder = getenv("POWER_FOLDER");
    char link[64], path[PATH_MAX];
    if (!folder) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    size_t prefix = strlen(folder);
    if (strncmp(path, folder, prefix) != 0 || path[prefix] != '/') return 0;
    const char *rest = path + prefix + 1;
    if (strchr(rest, '/') || strlen(rest) > NAME_MAX) return 0;
    strcpy(name, rest);
    return 1;
}

/* With the lock held. */
static struct file *file_of(const char *name) {
    for (struct file *file = files; file; file = file->next)
        if (strcmp(file->name, name) == 0) return file;
    struct file *file = calloc(1, sizeof *file);
    if (!file) abort();
    strcpy(file->name, name);
    file->next = files;
    files = file;
    return file;
}

/* Ends the process if it was to end with this write. With the lock held. */
static void cut_if_aimed(struct file *file) {
    const char *aim = getenv("POWER_AIM");
    char name[NAME_MAX + 1];
    unsigned long number;
    FILE *aimed = aim ? fopen(aim, "re") : NULL;
    file->writes = aimed ? file->writes + 1 : 0;
    if (!aimed) return;
    int is_read = fscanf(aimed, "%255s %lu", name, &number) == 2;
    fclose(aimed);
    if (is_read && strcmp(name, file->name) == 0 && number == file->writes) raise(SIGKILL);
}

static void wrote(int fd, off_t from, ssize_t length) {
    char name[NAME_MAX + 1];
    if (length <= 0 || !name_of(fd, name)) return;
    pthread_mutex_lock(&lock);
    struct file *file = file_of(name);
    struct range *last = file->count ? &file->unsynced[file->count - 1] : NULL;
    if (last && last->to == from) {
        last->to = from + length;
    } else {
        if (file->count == file->room) {
            file->room = file->room ? 2 * file->room : 64;
            file->unsynced = realloc(file->unsynced, file->room * sizeof *file->unsynced);
            if (!file->unsynced) abort();
        }
        file->unsynced[file->count++] = (struct range){from, from + length};
    }
    cut_if_aimed(file);
    pthread_mutex_unlock(&lock);
}

static void copy(int from, int to, struct range range) {
    ssize_t (*pwrite_)(int, const void *, size_t, off_t) = real("pwrite");
    char bytes[65536];
    off_t at = range.from;
    while (at < range.to) {
        size_t want = range.to - at < (off_t)sizeof bytes ? (size_t)(range.to - at) : sizeof bytes;
        ssize_t got = pread(from, bytes, want, at);
        if (got <= 0) return;
        if (pwrite_(to, bytes, got, at) != got) abort();
        at += got;
    }
}

/* What was written until now would survive from here on. */
static void synced(int fd) {
    const char *copies = getenv("POWER_COPIES");
    char name[NAME_MAX + 1], path[PATH_MAX];
    struct stat live;
    if (!copies || !name_of(fd, name) || fstat(fd, &live) != 0 || !S_ISREG(live.st_mode)) return;
    snprintf(path, sizeof path, "%s/%s", copies, name);
    pthread_mutex_lock(&lock);
    struct file *file = file_of(name);
    int (*open_)(const char *, int, ...) = real("open");
    int (*ftruncate_)(int, off_t) = real("ftruncate");
    int shadow = open_(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    char own[64];
    snprintf(own, sizeof own, "/proc/self/fd/%d", fd);
    int source = open_(own, O_RDONLY | O_CLOEXEC);
    if (shadow < 0 || source < 0) abort();
    struct stat kept;
    if (fstat(shadow, &kept) != 0) abort();
    if (kept.st_size == 0) copy(source, shadow, (struct range){0, live.st_size});
    for (size_t i = 0; i < file->count; i++) copy(source, shadow, file->unsynced[i]);
    file->count = 0;
    if (ftruncate_(shadow, live.st_size) != 0) abort();
    close(shadow);
    close(source);
    pthread_mutex_unlock(&lock);
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t at) {
    ssize_t (*next)(int, const void *, size_t, off_t) = real("pwrite");
    ssize_t done = next(fd, bytes, length, at);
    wrote(fd, at, done);
    return done;
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t at) {
    ssize_t (*next)(int, const void *, size_t, off64_t) = real("pwrite64");
    ssize_t done = next(fd, bytes, length, at);
    wrote(fd, at, done);
    return done;
}

ssize_t write(int fd, const void *bytes, size_t length) {
    ssize_t (*next)(int, const void *, size_t) = real("write");
    char name[NAME_MAX + 1];
    if (!name_of(fd, name)) return next(fd, bytes, length);
    ssize_t done = next(fd, bytes, length);
    off_t end = lseek(fd, 0, SEEK_CUR);
    if (done > 0) wrote(fd, end - done, done);
    return done;
}

int unlink(const char *path) {
    int (*next)(const char *) = real("unlink");
    const char *folder = getenv("POWER_FOLDER"), *copies = getenv("POWER_COPIES");
    int done = next(path);
    if (done == 0 && folder && copies) {
        size_t prefix = strlen(folder);
        char copy[PATH_MAX];
        if (strncmp(path, folder, prefix) == 0 && path[prefix] == '/') {
            snprintf(copy, sizeof copy, "%s%s", copies, path + prefix);
            next(copy);
        }
    }
    return done;
}

int fsync(int fd) {
    int (*next)(int) = real("fsync");
    int done = next(fd);
    if (done == 0) synced(fd);
    return done;
}

int fdatasync(int fd) {
    int (*next)(int) = real("fdatasync");
    int done = next(fd);
    if (done == 0) synced(fd);
    return done;
}
