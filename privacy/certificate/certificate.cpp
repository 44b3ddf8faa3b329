#include "privacy/certificate/certificate.hpp"

#include <cmath>
#include <stdexcept>
#include <utility>

#include "privacy/text/checked_lines.hpp"

namespace cudp::privacy {

void Certificate::hold_out(const Holdout& part) {
  holdout = part;
  epsilon = std::fmax(promise.epsilon, part.epsilon);
  delta = std::fmax(promise.delta, part.delta);
}

TunedRun Certificate::Tuning::run() const {
  TunedRun run{.law = law, .candidates = {}};
  for (const Part& part : parts) run.candidates.push_back(part.spending);
  return run;
}

void Certificate::select(Tuning chosen, double whole_delta) {
  const SelectionEpsilon found = epsilon_of(chosen, whole_delta, max_rows());
  if (chosen.count && !(found.epsilon <= chosen.count->training_epsilon))
    throw std::domain_error("the selection exceeds its part of the budget");
  chosen.mean = Stopping(chosen.law).mean();
  chosen.grid_checksum = checksum_of_grid(chosen.grid);
  chosen.by = found.by;
  chosen.order = found.order;
  tuning = std::move(chosen);
  // The selection's bound (found.epsilon) depends on the noisy number of examples, but the
  // guarantee must hold for every such number. So the stated epsilon is that of the whole budget.
  epsilon = tuning->count ? tuning->count->epsilon : found.epsilon;
  delta = tuning->count ? tuning->count->delta : whole_delta;
  if (groups)
    groups = Groups{.bounds = {}, .not_stated = "not stated: the settings were selected privately"};
}

std::string checksum_of_grid(const std::vector<std::string>& grid) {
  Checksum checksum;
  for (const std::string& candidate : grid) checksum.add_line(candidate);
  return checksum.text();
}

SelectionEpsilon epsilon_of(const Certificate::Tuning& tuning, double delta, std::uint64_t group) {
  return Selection(tuning.run(), group)
      .epsilon(tuning.count ? tuning.count->training_delta : delta);
}

std::string_view text_of(Certificate::Status status) {
  switch (status) {
    case Certificate::Status::not_finished:
      return "not finished";
    case Certificate::Status::refused:
      return "refused";
    default:
      return "finished";
  }
}

std::string_view text_of(Certificate::TestSet test_set) {
  switch (test_set) {
    case Certificate::TestSet::public_rows:
      return "public; read for test_accuracy only, not covered by the guarantee";
    case Certificate::TestSet::private_rows:
      return "not public: what was measured on it is not released, nor covered by the guarantee";
    default:
      return "none";
  }
}

}  // namespace cudp::privacy
