#include "runtime/gate/witness.hpp"

#include <utility>

namespace cudp {
namespace {

Witness* the_witness = nullptr;
Observer* the_observer = nullptr;
const Observation* the_observation = nullptr;  // which the observer is shown

}  // namespace

Witness* witness() { return the_witness; }

void set_witness(Witness* witness) {
  the_witness = witness;
  the_observer = nullptr;
  the_observation = nullptr;
}

bool wants_secrets() { return dynamic_cast<Observer*>(the_witness) != nullptr; }

Observation::Observation(const verify::Begin& run, std::function<std::uint64_t()> charged) {
  the_observer = dynamic_cast<Observer*>(the_witness);
  the_observation = this;
  if (the_observer != nullptr) the_observer->begins(run, std::move(charged));
}

Observation::~Observation() {
  if (the_observation != this) return;
  the_observer = nullptr;
  the_observation = nullptr;
}

Observer* observer() { return the_observer; }

}  // namespace cudp
