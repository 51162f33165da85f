#include "core/base/files/file_calls.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

namespace ranklab {

int FileCalls::open(const char* path, int flags, int mode) { return ::open(path, flags, mode); }
ssize_t FileCalls::write(int fd, const void* bytes, size_t size) { return ::write(fd, bytes, size); }
off_t FileCalls::seek(int fd, off_t offset) { return ::lseek(fd, offset, SEEK_SET); }
int FileCalls::sync(int fd) { return ::fsync(fd); }
int FileCalls::close(int fd) { return ::close(fd); }
int FileCalls::rename(const char* from, const char* to) { return ::rename(from, to); }
int FileCalls::unlink(const char* path) { return ::unlink(path); }
int FileCalls::make_folder(const char* path, int mode) { return ::mkdir(path, static_cast<mode_t>(mode)); }
int FileCalls::remove_folder(const char* path) { return ::rmdir(path); }
int FileCalls::exchange(const char* a, const char* b) { return ::renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE); }

FileCalls& system_file_calls() {
  static FileCalls calls;
  return calls;
}

}  // namespace ranklab
