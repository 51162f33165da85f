// Determines which software (core/sim/software.h) was used for a published run, from what its row and its source say.
// Thread rule: immutable; must not outlive the row and its source.
#pragma once
#include <string>

#include "core/plan/measured/row_reader.h"

namespace ranklab {

class RowSoftware {
 public:
  RowSoftware(const RowReader& config, const std::string& source) : c_(config), source_(source) {}

  std::string name() const;
  std::string unknown() const;  // why the row's framework corresponds to no known software; "" if it does
  bool own() const;             // whether it is this project
  bool of_megatron() const;
  bool of_zero_bubble() const;  // the authors of zero bubble train in a fork of Megatron-LM
  bool torchtitan() const;
  // Whether it is newer than the Megatron-LM of 2021 and 2022, which had neither sequence parallelism nor flash
  // attention and trained in fp16.
  bool newer() const;

 private:
  std::string framework() const;  // in lower case

  const RowReader& c_;
  const std::string& source_;
};

}  // namespace ranklab
