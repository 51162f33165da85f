// `ranklab lesson watch`: repeats the check whenever the file is saved, until it passes or Ctrl-C.
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <iostream>

#include "cli/lesson/lesson_session.h"
#include "core/base/error.h"

namespace ranklab {
namespace {

// Watches the folder instead of the file, because editors save under another name and rename, and `lesson reset` links
// a new file.
class FolderWatch {
 public:
  explicit FolderWatch(const std::filesystem::path& file) : name_(file.filename()), fd_(::inotify_init1(IN_CLOEXEC)) {
    const std::string folder = file.parent_path().string();
    const bool watching =
        fd_ >= 0 && ::inotify_add_watch(fd_, folder.c_str(), IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE) >= 0;
    RANKLAB_CHECK(watching, ErrorKind::kEnvironment, .where = "lesson watch", .what = "the folder cannot be watched",
                  .got = folder + ": " + std::strerror(errno),
                  .fix = "raise fs.inotify.max_user_watches, or use `ranklab lesson check`");
  }
  ~FolderWatch() { ::close(fd_); }
  FolderWatch(const FolderWatch&) = delete;
  FolderWatch& operator=(const FolderWatch&) = delete;

  // Waits until the file was saved and no further event has come for a moment. RETURNS: false after Ctrl-C.
  bool wait_for_save() {
    constexpr int kSettleMs = 80;
    bool saved = false;
    for (;;) {
      pollfd wait_for{.fd = fd_, .events = POLLIN, .revents = 0};
      const int ready = ::poll(&wait_for, 1, saved ? kSettleMs : 1000);
      if (interrupted()) return false;
      if (ready == 0 && saved) return true;
      if (ready > 0) saved = read_events() || saved;
    }
  }

 private:
  bool read_events() {
    alignas(inotify_event) std::array<char, 4096> buffer;
    const ssize_t size = ::read(fd_, buffer.data(), buffer.size());
    bool mine = false;
    for (ssize_t at = 0; at < size;) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
      if (event->len > 0 && name_ == std::string(event->name)) mine = true;
      at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
    }
    return mine;
  }

  std::string name_;
  int fd_;
};

}  // namespace

int lesson_watch(const LessonRequest& request) {
  note_interrupts();
  LessonSession session(request);
  const std::filesystem::path path = session.exercise(request);
  require_exercise(session, path);  // reports what is wrong with the file before trying to watch its folder
  // Starts before the check, so that no save is missed. For a link, watches the folder of the file that it points to,
  // which editors write.
  FolderWatch watch(std::filesystem::weakly_canonical(path));
  int code = check_once(session, request);
  while (code == exit_code(ErrorKind::kCheckFailed)) {
    session.screen.line("Watching " + path.string() + " (Ctrl-C leaves)");
    std::cout.flush();
    if (!watch.wait_for_save()) return exit_code(ErrorKind::kInterrupted);
    session.screen.line();
    code = check_once(session, request);
  }
  return code;
}

}  // namespace ranklab
