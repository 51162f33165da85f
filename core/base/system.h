// What this process can learn about its environment: its own file, the terminal, the machine's memory.
// Thread rule: pure queries.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

namespace ranklab {

// The file this process was started from; empty where the system does not report it.
std::filesystem::path program_path();

// The value of an environment variable; empty where it is not set.
std::string environment_variable(const char* name);

// "GenuineIntel", "AuthenticAMD"; empty where the processor does not report it.
std::string processor_vendor();

// $COLUMNS, or else the width of the terminal on `descriptor` (1: stdout), or else `otherwise`; 1000 at most, because
// texts are as wide as they are told.
int terminal_columns(int otherwise, int descriptor = 1);

// CPU time used so far, in ms. Unlike wall time, it is hardly affected by other programs on the machine.
enum class CpuTime { kThread, kProcess };
double cpu_time_ms(CpuTime whose);

// A field of /proc/meminfo such as "MemAvailable:"; 0 when the system does not report it.
int64_t system_memory_bytes(const std::string& field);
// The memory that this process can still allocate: what is available on the machine, but at most what its cgroup (a
// container's limit) leaves; file cache counted against the cgroup is available, because the kernel reclaims it when
// needed. 0 when the system does not report it.
int64_t available_memory_bytes();
// A field of /proc/self/smaps_rollup: "Pss:", or "Anonymous:" for memory that no file backs.
int64_t process_memory_bytes(const std::string& field);

}  // namespace ranklab
