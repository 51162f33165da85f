// The line of the learner's file in which a crash happened. It is that of the innermost call in the compiled exercise,
// because the function that crashed may be in the C++ library. The child notes addresses; the parent asks addr2line,
// which comes with the compiler, for their lines. Thread rule: one crash at a time.
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace ranklab::lesson {

// Call in the child before anything can crash: loads what a signal handler must not load.
void prepare_crash_place();
// Call in the signal handler: fills `offsets` with addresses in the exercise's library, innermost first. RETURNS: their
// number.
int exercise_frames(std::span<uint64_t> offsets);

// "exercise.cpp:41"; "" if no frame is in the file, or if there is no addr2line.
std::string place_of_crash(const std::filesystem::path& shared_object, const std::string& source_name,
                           const std::vector<uint64_t>& offsets);

}  // namespace ranklab::lesson
