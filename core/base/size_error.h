// An error about sizes that do not fit each other because one does not divide the other. It names both sizes and, for
// each, the values that would fit; a caller that knows all settings may replace these by values that also fit the other
// settings (core/config/settings/fitting_sizes.h). Thread rule: immutable after construction.
#pragma once
#include <string>
#include <utility>

#include "core/base/error.h"

namespace ranklab {

class SizeError : public Error {
 public:
  // `other`: a remedy that is not a size, to be shown as part of "use --tp 2, or ..."; "" if there is none.
  explicit SizeError(ErrorText text, std::string other = "")
      : Error(ErrorKind::kInvalidArgument, std::move(text)), other_(std::move(other)) {}
  const std::string& other() const { return other_; }

 private:
  std::string other_;
};

}  // namespace ranklab
