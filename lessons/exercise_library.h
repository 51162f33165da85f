// The learner's compiled exercise: a shared object and the functions in it. Thread rule: immutable once loaded.
#pragma once
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>

#include "core/base/error.h"

namespace ranklab::lesson {

class ExerciseLibrary {
 public:
  // Throws kCheckFailed if the library cannot be loaded. It is never unloaded: the process that loads it is a
  // short-lived child.
  explicit ExerciseLibrary(const std::filesystem::path& shared_object);

  // Whether the library defines `name`, since a learner may leave out or remove the function of a warm-up.
  bool has(const std::string& name) const;
  // Throws kCheckFailed if the exercise does not define the function.
  template <typename Function>
  Function* function(const std::string& name) const {
    return reinterpret_cast<Function*>(symbol(name));
  }

  // For the thread world: how long a rank may be silent, and whom to notify if ranks cannot be joined.
  std::chrono::milliseconds hang_timeout{5'000};
  std::function<void(const Error&)> on_stuck = {};

 private:
  void* symbol(const std::string& name) const;
  void* handle_ = nullptr;
};

}  // namespace ranklab::lesson
