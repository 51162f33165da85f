// Multiple-choice tasks in the form of the LM Evaluation Harness, one JSON object per line: "query" or "question" (or
// "context"), "choices", and the correct one as "gold" or "answer" (or "label"): its index from 0, its letter, or its
// text. Thread rule: one thread.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ranklab {

struct ChoiceTask {
  std::string query;
  std::vector<std::string> choices;
  size_t gold = 0;
  int64_t line = 0;  // in the file
};

// Throws kIo, and kBadFile naming the line for invalid JSON, a missing query, missing or empty choices, or an answer
// that is none of them; also for a file without tasks.
std::vector<ChoiceTask> read_choice_tasks(const std::string& path);

struct TaskAnswer {
  std::vector<double> log_likelihood = {};  // per choice
  size_t chosen = 0;                        // the most likely one
  size_t chosen_by_byte = 0;                // the most likely one per byte of its text: acc_norm
};
// Of equally likely choices, takes the first.
TaskAnswer answer_of(const ChoiceTask& task, std::span<const double> log_likelihood);

// The share of correct answers, with the standard error of the mean of these zeros and ones (n - 1), as in the harness;
// 0 for a single task.
struct Accuracy {
  double share = 0, error = 0;
};
Accuracy accuracy_of(size_t correct, size_t tasks);

}  // namespace ranklab
