#include <initializer_list>
#include <limits>
#include <stdexcept>

#include "privacy/ledger.hpp"
#include "privacy/mechanism/mechanism_text.hpp"
#include "privacy/text/checked_lines.hpp"
#include "privacy/text/words.hpp"

// Format of a ledger file:
//
//   cudp-ledger 2 #<checksum>
//   count SIGMA EPSILON DELTA COUNT_EPSILON COUNT_DELTA TRAINING_EPSILON TRAINING_DELTA [GROUP]
//     #<checksum>
//   budget ORDER EPSILON DELTA FAILURE [GROUP] #<checksum>
//   release COUNT MECHANISM #<checksum>
//   steps FIRST COUNT MECHANISM #<checksum>
//   key FIRST #<checksum>
//   end #<checksum>
//
// The count of a split is optional and comes first, then the budget, which is optional too. GROUP
// is written only if it is above 1. Version 1, which can still be read, had no budget and one
// mechanism only: Q SIGMA instead of its name and fields.

namespace cudp::privacy {
namespace {

constexpr std::string_view title = "cudp-ledger 2", first_title = "cudp-ledger 1";

std::string join(std::initializer_list<std::string_view> words) {
  std::string line;
  for (const std::string_view word : words) line.append(line.empty() ? "" : " ").append(word);
  return line;
}

/// Parses the optional last word of a line, the number of examples of a unit of privacy; 1 if there
/// is none.
std::uint64_t take_group(std::string_view line) {
  if (line.empty()) return 1;
  const std::uint64_t group = take_count(line);
  if (group < 2) expected("a group above 1, or none", std::to_string(group));
  if (!line.empty()) expected("the end of the line", line);
  return group;
}

/// Appends the number of examples of a unit of privacy to a line, in the form that take_group()
/// parses: nothing if it is 1.
std::string with_group(const std::string& line, std::uint64_t group) {
  return group > 1 ? join({line, std::to_string(group)}) : line;
}

Budget budget_of(std::string_view line) {
  take_word(line);
  Budget budget;
  for (double* const field : {&budget.order, &budget.epsilon, &budget.delta, &budget.failure})
    *field = take_number(line);
  budget.group = take_group(line);
  return budget;
}

CountSplit split_of(std::string_view line) {
  take_word(line);
  CountSplit split;
  for (double* const field : {&split.sigma, &split.epsilon, &split.delta, &split.count_epsilon,
                              &split.count_delta, &split.training_epsilon, &split.training_delta})
    *field = take_number(line);
  split.group = take_group(line);
  return split;
}

}  // namespace

std::string Ledger::line_of(const Record& record) {
  const std::string first = std::to_string(record.first),
                    count = std::to_string(record.release.count);
  switch (record.kind) {
    case Kind::release:
      return join({"release", count, exact_text(record.release.mechanism)});
    case Kind::steps:
      return join({"steps", first, count, exact_text(record.release.mechanism)});
    case Kind::key:
      return join({"key", first});
  }
  return {};
}

Ledger::Record Ledger::record_of(std::string_view line, int version) {
  const std::string_view whole = line, word = take_word(line);
  Record record;
  if (word == "release") {
    record.kind = Kind::release;
  } else if (word == "steps") {
    record.kind = Kind::steps;
  } else if (word == "key") {
    record.kind = Kind::key;
  } else {
    expected("release, steps, key or end", whole);
  }
  if (record.kind != Kind::release) record.first = take_count(line);
  if (record.kind != Kind::key) {
    const std::uint64_t count = take_count(line);
    if (version == 1) {
      const double q = take_number(line), sigma = take_number(line);
      record.release = {.mechanism = sampled_gaussian_mechanism(q, sigma), .count = count};
    } else {
      record.release = {.mechanism = take_mechanism(line), .count = count};
    }
  }
  if (!line.empty()) expected("the end of the line", line);
  return record;
}

std::string Ledger::to_text() const {
  CheckedLines lines;
  const auto write = [&](std::string_view line) { lines.add(line); };
  write(title);
  if (split_)
    write(with_group(join({"count", hex(split_->sigma), hex(split_->epsilon), hex(split_->delta),
                           hex(split_->count_epsilon), hex(split_->count_delta),
                           hex(split_->training_epsilon), hex(split_->training_delta)}),
                     split_->group));
  if (budget_)
    write(with_group(join({"budget", hex(budget_->order), hex(budget_->epsilon),
                           hex(budget_->delta), hex(budget_->failure)}),
                     budget_->group));
  for (const Record& record : records_) write(line_of(record));
  write("end");
  return lines.text();
}

Ledger Ledger::from_text(std::string_view text, std::string_view name) {
  Ledger ledger;
  LineReader lines(text, name);
  lines.read([&] {
    const std::string_view first = lines.take();
    if (first != title && first != first_title) expected(join({"the title", title}), first);
    const int version = first == title ? 2 : 1;
    for (;;) {
      const std::string_view line = lines.take();
      if (line == "end") break;
      if (version > 1 && lines.number() == 2 && line.starts_with("count ")) {
        ledger.count_first(split_of(line));
        continue;
      }
      if (version > 1 && lines.number() == (ledger.split() ? 3u : 2u) &&
          line.starts_with("budget ")) {
        ledger.limit(budget_of(line));
        continue;
      }
      const Record record = record_of(line, version);
      if (record.kind == Kind::steps && record.first != ledger.until_)
        expected(join({"steps from", std::to_string(ledger.until_)}), line);
      if (record.kind == Kind::steps &&
          record.release.count > std::numeric_limits<std::uint64_t>::max() - record.first)
        expected("a last step below 2^64", line);
      if (record.kind == Kind::key && record.first > ledger.until_)
        expected(join({"a key from at most step", std::to_string(ledger.until_)}), line);
      ledger.append(record);
    }
  });
  return ledger;
}

}  // namespace cudp::privacy
