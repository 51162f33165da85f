// Sizes that do not fit each other: one does not divide another. What is thrown names both, and the values of both that
// would fit; whoever knows all settings may look for those that fit the others, too (core/config/settings/
// fitting_sizes.h). Thread rule: immutable after construction.
#pragma once
#include <string>
#include <utility>

#include "core/base/error.h"

namespace ranklab {

class SizeError : public Error {
 public:
  // `other`: a way out that is no size, as a part of "use --tp 2, or ..."; "": none.
  explicit SizeError(ErrorText text, std::string other = "")
      : Error(ErrorKind::kInvalidArgument, std::move(text)), other_(std::move(other)) {}
  const std::string& other() const { return other_; }

 private:
  std::string other_;
};

}  // namespace ranklab
