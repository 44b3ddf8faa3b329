#pragma once
// Printers of this project's types for messages of GoogleTest, which would otherwise show bytes.
#include <ostream>

#include <nlohmann/json.hpp>

#include "privacy/ledger.hpp"
#include "privacy/mechanism/mechanism_text.hpp"
#include "runtime/config/choices.hpp"
#include "runtime/gate/gate.hpp"
#include "runtime/methods/plan.hpp"

namespace cudp {

namespace privacy {

inline void PrintTo(const Release& r, std::ostream* os) {
  *os << r.count << " x " << exact_text(r.mechanism);
}

inline void PrintTo(const NoisyValue& l, std::ostream* os) {
  *os << l.times << " x " << l.name << ", " << l.numbers << " numbers, grid " << l.grid
      << ", noise " << l.noise_std << ", sensitivity " << l.sensitivity;
}

}  // namespace privacy

inline void PrintTo(OptimizerKind kind, std::ostream* os) {
  *os << choice_name<OptimizerKind>(kOptimizers, kind);
}
inline void PrintTo(ScheduleKind kind, std::ostream* os) {
  *os << choice_name<ScheduleKind>(kSchedules, kind);
}
inline void PrintTo(Clipping clipping, std::ostream* os) { *os << name_of(clipping); }
inline void PrintTo(Generator generator, std::ostream* os) { *os << name_of(generator); }
inline void PrintTo(const PrivacyPlan& plan, std::ostream* os) { *os << encode_plan(plan).dump(); }

}  // namespace cudp
