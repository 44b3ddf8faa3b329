#include "runtime/gate/witness.hpp"

namespace cudp {
namespace {

Witness* the_witness = nullptr;

}  // namespace

Witness* witness() { return the_witness; }

void set_witness(Witness* witness) { the_witness = witness; }

}  // namespace cudp
