#include "core/base/file_calls.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

namespace ranklab {

int FileCalls::open(const char* path, int flags, int mode) { return ::open(path, flags, mode); }
ssize_t FileCalls::write(int fd, const void* bytes, size_t size) { return ::write(fd, bytes, size); }
int FileCalls::sync(int fd) { return ::fsync(fd); }
int FileCalls::close(int fd) { return ::close(fd); }
int FileCalls::rename(const char* from, const char* to) { return ::rename(from, to); }
int FileCalls::unlink(const char* path) { return ::unlink(path); }

FileCalls& system_file_calls() {
  static FileCalls calls;
  return calls;
}

}  // namespace ranklab
