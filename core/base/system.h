// What this process can learn about its environment: its own file, the terminal, the machine's memory.
// Thread rule: pure queries.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

namespace ranklab {

// The file this process was started from; empty where the system does not tell.
std::filesystem::path program_path();

// Creates a folder with this name and six random letters in the directory for temporary files; the caller removes it.
// Throws kIo with this `where`.
std::filesystem::path new_temporary_folder(const std::string& name, const char* where);

// Empty where it is not set.
std::string environment_variable(const char* name);

// "GenuineIntel", "AuthenticAMD"; empty where the processor does not tell.
std::string processor_vendor();

// $COLUMNS, else the width of the terminal on the descriptor (1: stdout), else `otherwise`.
int terminal_columns(int otherwise, int descriptor = 1);

// CPU time so far, in ms: other programs on the machine change it less than the time that passes.
enum class CpuTime { kThread, kProcess };
double cpu_time_ms(CpuTime whose);

// A field of /proc/meminfo such as "MemAvailable:"; 0 when the system does not tell.
int64_t system_memory_bytes(const std::string& field);
// What this process can still take: what is available on the machine, and no more than its cgroup (a container's limit)
// leaves, whose file cache is given back when needed. 0 when the system does not tell.
int64_t available_memory_bytes();
// A field of /proc/self/smaps_rollup: "Pss:", or "Anonymous:" for memory that no file backs.
int64_t process_memory_bytes(const std::string& field);

}  // namespace ranklab
