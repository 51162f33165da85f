// Reads the golden files of this folder (make_golden.py says how they are made) and evaluates the same input formula.
#pragma once

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/sim/aten.h"

namespace ranklab::golden {

inline at::Tensor wave(at::IntArrayRef shape, double salt, double scale = 1.0, double offset = 0.0) {
  at::Tensor x = at::empty(shape, at::TensorOptions().dtype(at::kDouble));
  double* data = x.mutable_data_ptr<double>();
  for (int64_t i = 0; i < x.numel(); ++i) data[i] = offset + scale * std::sin(0.7 * static_cast<double>(i) + salt);
  return x;
}

struct Golden {
  std::vector<std::string> names;  // in file order
  std::map<std::string, at::Tensor> tensors;
  const at::Tensor& operator[](const std::string& name) const { return tensors.at(name); }
};

inline Golden load(const std::string& file) {
  std::string path = RANKLAB_GOLDEN_DIR "/";
  path += file;
  std::ifstream in(path);
  if (!in) throw std::runtime_error("no golden file " + file);
  Golden golden;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string name, word;
    words >> name;
    std::vector<int64_t> shape;
    while (words >> word && word != ":") shape.push_back(std::stoll(word));
    std::vector<double> values;
    for (double value; words >> value;) values.push_back(value);
    golden.names.push_back(name);
    golden.tensors[name] = at::tensor(values, at::TensorOptions().dtype(at::kDouble)).view(shape);
  }
  return golden;
}

// max |a - b| / max |b|
inline double relative_error(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor want = b.detach().to(at::kDouble);
  const double scale = want.abs().max().item<double>();
  const double error = (a.detach().to(at::kDouble) - want).abs().max().item<double>();
  return error / (scale > 0 ? scale : 1.0);
}

}  // namespace ranklab::golden
