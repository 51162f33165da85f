#include <sched.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cstdlib>

#include "cli/doctor/doctor_checks.h"
#include "core/base/error.h"
#include "core/base/system.h"
#include "core/base/text.h"
#include "core/comm/process_env.h"

namespace ranklab {
namespace {

using Status = DoctorLine::Status;

// The number in a file, or `otherwise` if there is none (also for "max").
double number_in(const std::string& path, double otherwise) {
  const std::string line = first_line_of_file(path);
  char* end = nullptr;
  const double value = std::strtod(line.c_str(), &end);
  return end == line.c_str() ? otherwise : value;
}

std::string limit_text(rlim_t limit) { return limit == RLIM_INFINITY ? "unlimited" : std::to_string(limit); }

constexpr double kUnlimited = 1e18;

}  // namespace

DoctorLine check_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  std::string value = std::to_string(cores) + (cores == 1 ? " core" : " cores") + " for this process";
  const std::string quota = first_line_of_file("/sys/fs/cgroup/cpu.max");  // "200000 100000", or "max 100000"
  double used = 0, period = 0;
  if (std::sscanf(quota.c_str(), "%lf %lf", &used, &period) == 2 && period > 0 && used / period < cores) {
    return {Status::kWarn, "cores", value + strprintf(", of which its cgroup grants %.1f", used / period),
            "give the container more --cpus"};
  }
  return {Status::kOk, "cores", value};
}

DoctorLine check_memory_available() {
  constexpr double kSmallest = 512.0 * (1 << 20), kComfortable = 2048.0 * (1 << 20);
  const double total = static_cast<double>(system_memory_bytes("MemTotal:"));
  const double available = static_cast<double>(available_memory_bytes());
  const double group = number_in("/sys/fs/cgroup/memory.max", kUnlimited);
  std::string value = human_bytes(available) + " available of " + human_bytes(total);
  if (group < total) value += ", the cgroup's limit is " + human_bytes(group);
  if (available < kSmallest) {
    return {Status::kMissing, "memory", value + "; want 512 MiB", "close programs, or train with fewer ranks", true};
  }
  if (available < kComfortable) return {Status::kWarn, "memory", value, "large presets will not fit", true};
  return {Status::kOk, "memory", value, "", true};
}

DoctorLine check_open_files() {
  constexpr rlim_t kSmallest = 64, kComfortable = 1024;
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const std::string value = "ulimit -n " + limit_text(limit.rlim_cur) + " (hard " + limit_text(limit.rlim_max) + ")";
  const std::string raise = "ulimit -n " + limit_text(std::min<rlim_t>(limit.rlim_max, 65536));
  if (limit.rlim_cur < kSmallest) return {Status::kMissing, "open files", value + "; want 64", raise, true};
  if (limit.rlim_cur < kComfortable) {
    return {Status::kWarn, "open files", value + "; many ranks over TCP need more", raise, true};
  }
  return {Status::kOk, "open files", value, "", true};
}

DoctorLine check_threads() {
  constexpr double kSmallest = 32, kComfortable = 512;
  rlimit user{};
  getrlimit(RLIMIT_NPROC, &user);
  const double system = number_in("/proc/sys/kernel/threads-max", kUnlimited);
  const double group = number_in("/sys/fs/cgroup/pids.max", kUnlimited);
  const double own = user.rlim_cur == RLIM_INFINITY ? kUnlimited : static_cast<double>(user.rlim_cur);
  const double least = std::min({system, group, own});
  std::string value = "ulimit -u " + limit_text(user.rlim_cur) + strprintf(", system %.0f", system);
  if (group < kUnlimited) value += strprintf(", cgroup %.0f", group);
  if (least < kSmallest) {
    return {Status::kMissing, "threads", value + "; want 32", "ulimit -u 4096, or docker run --pids-limit -1", true};
  }
  if (least < kComfortable)
    return {Status::kWarn, "threads", value, "ulimit -u 4096, or docker run --pids-limit -1", true};
  return {Status::kOk, "threads", value, "", true};
}

DoctorLine check_shared_memory() {
  struct statvfs space {};
  if (statvfs("/dev/shm", &space) != 0) {
    return {Status::kWarn, "/dev/shm", "not there; NCCL between processes needs it", "docker run --shm-size 1g"};
  }
  const double size = static_cast<double>(space.f_blocks) * static_cast<double>(space.f_frsize);
  const double free = static_cast<double>(space.f_bavail) * static_cast<double>(space.f_frsize);
  const std::string value = human_bytes(free) + " free of " + human_bytes(size);
  if (size < 256.0 * (1 << 20)) {
    return {Status::kWarn, "/dev/shm", value + "; NCCL between processes may need more", "docker run --shm-size 1g"};
  }
  return {Status::kOk, "/dev/shm", value};
}

// The launcher whose variables mark this process as a rank; launchers are checked in their order of precedence.
DoctorLine check_launcher() {
  std::string order, used;
  for (const ProcessEnvLine& line : describe_process_env([](const char* name) { return std::getenv(name); })) {
    order += (order.empty() ? "" : " > ") + line.launcher;
    if (line.used) used = line.launcher + ": " + line.variables;
  }
  try {
    read_process_env();
  } catch (const Error& error) {
    return {Status::kWarn, "launcher", error.text().what + "; got " + error.text().got, error.text().fix};
  }
  if (!used.empty()) return {Status::kOk, "launcher", used + " (precedence " + order + ")"};
  return {Status::kOk, "launcher", "none: one process; precedence " + order};
}

}  // namespace ranklab
