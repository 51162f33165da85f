// The system calls by which a file gets written, one virtual function each, so that a test can let the n-th of them
// fail, write less than it was asked, or cut the power. Each answers as the call of its name does: -1 and errno.
// Thread rule: the system's own are safe to call from any thread.
#pragma once
#include <sys/types.h>

#include <cstddef>

namespace ranklab {

class FileCalls {
 public:
  virtual ~FileCalls() = default;
  virtual int open(const char* path, int flags, int mode);
  virtual ssize_t write(int fd, const void* bytes, size_t size);
  virtual off_t seek(int fd, off_t offset);  // lseek from the begin
  virtual int sync(int fd);                  // fsync
  virtual int close(int fd);
  virtual int rename(const char* from, const char* to);
  virtual int unlink(const char* path);
  virtual int make_folder(const char* path, int mode);  // mkdir
  virtual int remove_folder(const char* path);          // rmdir
  virtual int exchange(const char* a, const char* b);   // renameat2(RENAME_EXCHANGE): both names stay taken
};

FileCalls& system_file_calls();

}  // namespace ranklab
