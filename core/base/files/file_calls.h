// The system calls that write files, one virtual function each, so that a test can make the n-th of them fail, write
// fewer bytes than requested, or cut the power. Each returns what the call of its name returns: -1 and errno on
// failure. Thread rule: the system's implementation is safe to call from any thread.
#pragma once
#include <sys/types.h>

#include <cstddef>

namespace ranklab {

class FileCalls {
 public:
  virtual ~FileCalls() = default;
  virtual int open(const char* path, int flags, int mode);
  virtual ssize_t write(int fd, const void* bytes, size_t size);
  virtual off_t seek(int fd, off_t offset);  // lseek from the beginning
  virtual int sync(int fd);                  // fsync
  virtual int close(int fd);
  virtual int rename(const char* from, const char* to);
  virtual int unlink(const char* path);
  virtual int make_folder(const char* path, int mode);  // mkdir
  virtual int remove_folder(const char* path);          // rmdir
  virtual int exchange(const char* a, const char* b);   // renameat2(RENAME_EXCHANGE): both names continue to exist
};

FileCalls& system_file_calls();

}  // namespace ranklab
