#include "lessons/crash_place.h"

#include <dlfcn.h>
#include <execinfo.h>

#include <array>
#include <cstdio>
#include <string_view>

#include "core/base/shell_quote.h"
#include "core/base/text.h"
#include "lessons/compile.h"

namespace ranklab::lesson {
namespace {

constexpr int kMostFrames = 64;
constexpr int kOwn = 3;  // frames of this function, the signal handler and its caller; the next one got the signal

}  // namespace

void prepare_crash_place() {
  void* unused = nullptr;
  ::backtrace(&unused, 1);
}

int exercise_frames(std::span<uint64_t> offsets) {
  std::array<void*, kMostFrames> frames{};
  const int count = ::backtrace(frames.data(), kMostFrames);
  size_t found = 0;
  for (int i = kOwn; i < count && found < offsets.size(); ++i) {
    void* const frame = frames[static_cast<size_t>(i)];
    Dl_info where = {};
    if (::dladdr(frame, &where) == 0 || where.dli_fname == nullptr) continue;
    if (!std::string_view(where.dli_fname).ends_with(kExerciseLibrary)) continue;
    const uint64_t offset = reinterpret_cast<uint64_t>(frame) - reinterpret_cast<uint64_t>(where.dli_fbase);
    offsets[found++] = offset - (i == kOwn ? 0 : 1);  // a caller continues here, maybe on the next line
  }
  return static_cast<int>(found);
}

std::string place_of_crash(const std::filesystem::path& shared_object, const std::string& source_name,
                           const std::vector<uint64_t>& offsets) {
  if (offsets.empty()) return "";
  std::string command = "addr2line -i -e " + shell_quote(shared_object.string());
  for (const uint64_t offset : offsets) command += strprintf(" 0x%llx", static_cast<unsigned long long>(offset));
  FILE* pipe = ::popen((command + " 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) return "";
  std::string place;
  std::array<char, 4096> line;
  while (std::fgets(line.data(), static_cast<int>(line.size()), pipe) != nullptr) {  // "-i" also prints inlined calls
    const std::string_view text(line.data());
    const size_t at = text.rfind("/" + source_name + ":");
    if (!place.empty() || at == std::string_view::npos) continue;
    const size_t end = text.find_first_not_of("0123456789", at + source_name.size() + 2);
    place = text.substr(at + 1, end - at - 1);
  }
  ::pclose(pipe);
  return place;
}

}  // namespace ranklab::lesson
