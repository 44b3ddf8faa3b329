#!/usr/bin/env python3
"""Which wrong kernels do the tests on interpreted PTX find (tests/support/ptx)?

PTX mutants: what nvcc made is changed as a wrong line of CUDA would change it, and is run in its
place. Source mutants: a copy of the sources gets a bug that the SIMT emulator cannot have, because
it stands between #ifdef __CUDACC__; nvcc compiles the kernels that tests launch once for each.
Mutants of layouts, which the compiler works out, are compiled with the tests of layouts alone.
Usage: scripts/mutants.py BUILD_DIR [NAME...]    BUILD_DIR has cudp_ptx_tests; those whose line has a NAME, of
                                                 barriers too; all but barriers if none is named, and 9 of those
Exit code: 0 if all are found that are expected to be, and no others.
"""
import json
import os
import pathlib
import random
import re
import shlex
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else sys.exit(__doc__)
TESTS = BUILD / "tests/cudp_ptx_tests"
FOLDER = BUILD / "mutants"

ROWS = "FusedKernels.*:All/Fused*/*softmax:All/Fused*/*mlp:All/Fused*/svm"  # those of dense rows
KERNELS = "CudaKernel.*:FusedKernels.*:CudaPatch*:*CudaProduct*:*Cancelling*:CudaScatter*:All/FusedStep*:All/FusedTransformed*"
TENSOR = "CudaKernel.ATensorCore*:CudaKernel.OperandsAre*:CudaPatch*:*CudaProduct*tf32:CudaScatter*"
LISTS = "TensorStep.ABlock*"  # of the fused kernel of lists of layers: two instances, two examples
FINISH = "CudaKernel.Finish*:CudaKernel.TheCursor*:CudaKernel.TheEndOf*:*Release*"
TEXTS = "*CudaSequence*:*CudaSteps*:*CudaTextProduct*"
RANDOM = "*Random*:*RoundedNormal*:*Sample*:*Update*"
SMALL_ENGINES = "All/CudaEngine.*/mlp*:All/CudaEngine.*/logistic*:All/CudaEngine.*/mixed*"
ENGINE = "All/CudaEngine.*mlp*:All/CudaEngine.*cnn*"
TARGETS, WEIGHTS, HOLD_OUT = "CudaTargets.*", "CudaClassWeights.*", "CudaHoldOut.*"


# --- Mutants of PTX: a text to another ---

def swap_operands(group, i, j):
    """Exchanges two registers of an mma's group 0 (d), 1 (a), 2 (b) or 3 (c)."""
    def change(text):
        def one(m):
            groups = re.findall(r"\{[^}]*\}", m.group(0))
            registers = groups[group].strip("{}").split(",")
            registers[i], registers[j] = registers[j], registers[i]
            groups[group] = "{" + ",".join(registers) + "}"
            return m.group(0)[:m.group(0).index("{")] + ", ".join(groups) + ";"
        return re.sub(r"mma\.sync[^;]*;", one, text)
    return change


def replace(pattern, by, count=0):
    return lambda text: re.sub(pattern, by, text, count=count)


def plain_add(text):
    """Atomic additions whose result nobody reads: load, add, store."""
    return re.sub(r"atom\.global\.add\.u(32|64)\s+(%\w+), (\[[^\]]*\]), ([^;]+);",
                  r"ld.global.u\1 \2, \3; add.s\1 \2, \2, \4; st.global.u\1 \3, \2;", text)


def kernel_at(text, at):
    return re.findall(r"\.entry ([\w$]+)", text[:at])[-1]


# Of the instances of the fused kernel of lists of layers, those that LISTS launches.
LIST_KERNELS = r"12fused_kernelINS0_4PlanINS0_(3CnnELNS0_5SplitE0ELNS0_5InputE0|10ScatterCnnELNS0_5SplitE0ELNS0_5InputE1)ELi1ELb0"


def barriers(text):
    """Where block barriers stand, but in dense rows' kernel with one output, which has one barrier too many: a thread
    reads what it wrote; and in other fused kernels of lists of layers, which have the same source. Of that source the
    second barrier is for features that are bytes, and the last but two for networks whose first gradient is one warp's:
    others have one just before."""
    kernels = {m.start(): kernel_at(text, m.start()) for m in re.finditer(r"bar\.sync\s+0;|barrier\.sync\s+0;", text)}
    spare = [at for at, kernel in kernels.items() if "ScatterCnn" in kernel and re.search(LIST_KERNELS, kernel)]
    spare = spare[1:2] + spare[-3:-2]
    return [at for at, kernel in kernels.items() if at not in spare
            and (re.search(LIST_KERNELS, kernel) or not re.search("12fused_kernel|dense_rows_kernelILb1", kernel))]


def tests_of(kernel):
    """Those that launch a kernel."""
    if "dense_rows_kernel" in kernel:
        return ROWS
    if "12fused_kernel" in kernel:
        return LISTS
    return "*AdaClip*" if re.search("coordinate|layer_shift", kernel) else KERNELS + ":" + SMALL_ENGINES


def without_barrier(at):
    def change(text):
        return text[:at] + text[text.index(";", at) + 1:]
    return change


def without_barriers_of(kernel):
    def change(text):
        return re.sub(rf"\.entry [\w$]*{kernel}.*?\n\}}",
                      lambda m: re.sub(r"(bar|barrier)\.sync\s+0;", "", m.group(0)), text, flags=re.S)
    return change


def next_address(text):
    """Stores to shared memory a word further, the first six."""
    return re.sub(r"st\.shared\.(f32|b32) \[(%r\d+)\]", r"st.shared.\1 [\2+4]", text, count=6)


def loads_further(text):
    return re.sub(r"(ld\.shared\.v4\.(?:f32|b32)\s+[^\[]*\[%r\d+)(?:\+(-?\d+))?\]",
                  lambda m: f"{m.group(1)}+{int(m.group(2) or 0) + 4}]", text, count=40)


def shared_shorter(by):
    def change(text):
        return re.sub(r"(\.shared \.align 16 \.b8 \w+\[)(\d+)(\];)",
                      lambda m: f"{m.group(1)}{int(m.group(2)) - by}{m.group(3)}" if int(m.group(2)) > by else m.group(0), text)
    return change


def undefined_register(text):
    """The first register that is set to a number in each kernel is not."""
    def one(m):
        return re.sub(r"\n\s*mov\.(?:b32|u32|s32)\s+%r\d+, -?\d+;", "\n", m.group(0), count=1)
    return re.sub(r"\.entry.*?\n\}", one, text, flags=re.S)


def is_ours(text):
    """Whether a module's PTX is that of our kernels: Ampere's, or Hopper's where there are both."""
    return re.search(r"\.target sm_[89]0\b", text) is not None


def ptx_mutants(texts, wanted):
    """(name, number of the module, change, tests, expected to be found, what is to be said)"""
    kernels = next(n for n, t in texts.items() if "patch_gradient" in t and is_ours(t))
    own = next(n for n, t in texts.items() if "half_product_kernel" in t and is_ours(t))  # of the tests
    texts_of = next(n for n, t in texts.items() if "sequence_gradient" in t and is_ours(t))
    fused = [n for n, t in texts.items() if "bar.warp.sync" in t or "barrier.warp" in t or "dense_rows_kernel" in t]
    rows = next(n for n, t in texts.items() if "dense_rows_kernel" in t and is_ours(t))
    lists = next(n for n, t in texts.items() if re.search(LIST_KERNELS, t) and is_ours(t))
    all_of = []
    for name, group, i, j in [("mma a1-a2", 1, 1, 2), ("mma b0-b1", 2, 0, 1), ("mma d1-d2", 0, 1, 2)]:
        all_of.append((name, kernels, swap_operands(group, i, j), TENSOR, True, ""))
        all_of.append((name + " of dense rows", rows, swap_operands(group, i, j), ROWS, True, ""))
        all_of.append((name + " of texts", texts_of, swap_operands(group, i, j), TEXTS, True, ""))
        all_of.append((name + " of lists", lists, swap_operands(group, i, j), LISTS, True, ""))
    all_of += [
        ("ldmatrix of texts not transposed", texts_of, replace(r"(ldmatrix\S*)\.trans", r"\1"), TEXTS, True, ""),
        ("no barrier in sums of texts", texts_of, without_barriers_of("sequence_gradient_sum_kernel"), TEXTS, True, ""),
        ("no barrier in steps of texts", texts_of, without_barriers_of("half_recurrent_kernel"), TEXTS, True, ""),
        ("no barrier in steps of texts back", texts_of, without_barriers_of("half_recurrent_backward_kernel"), TEXTS, True, ""),
        ("no barrier in products of texts", texts_of, without_barriers_of("text_product_kernel"), TEXTS, True, ""),
        ("ldmatrix of lists not transposed", lists, replace(r"(ldmatrix\S*)\.trans", r"\1"), LISTS, True, ""),
        ("ldmatrix of patches not transposed", kernels, replace(r"(ldmatrix\S*)\.trans", r"\1"), TENSOR, True, ""),
        ("no barrier in sums of patches", kernels, without_barriers_of("patch_gradient_sum_kernel"), TENSOR, True, ""),
        ("cp.async of 16 always", kernels, replace(r"(cp\.async\.cg\.shared\.global \[[^\]]+\], \[[^\]]+\], 16), %r\d+;", r"\1;"), TENSOR, True, ""),
        ("no wait for copies", kernels, replace(r"cp\.async\.wait_all;", ""), TENSOR, True, ""),
        ("operands not rounded", kernels, replace(r"cvt\.rna\.tf32\.f32", "mov.b32"), TENSOR, True, ""),
        ("loads 4 bytes further", kernels, loads_further, KERNELS, True, ""),
        ("shared 32 bytes shorter", kernels, shared_shorter(32), KERNELS, True, ""),
        (".maxntid 32", kernels, replace(r"\.maxntid \d+", ".maxntid 32"), KERNELS, True, ""),
        ("stores a word further", kernels, next_address, KERNELS, True, ""),
        ("a register undefined", kernels, undefined_register, KERNELS, True, ""),
        ("atomics are plain adds", kernels, plain_add, KERNELS, True, ""),
    ]
    for n in fused:
        if re.search(r"bar\.warp\.sync", texts[n]):
            all_of.append((f"no bar.warp.sync in module {n}", n, replace(r"bar\.warp\.sync\s+[^;]*;", ""), ENGINE + ":" + KERNELS, True, ""))
    places = [(n, at) for n in sorted({kernels, rows, own, lists}) for at in barriers(texts[n])]
    for n, at in places if wanted else random.Random(1).sample(places, 9):
        name = subprocess.run(["c++filt", kernel_at(texts[n], at)], capture_output=True, text=True).stdout.strip()
        line = texts[n].count("\n", 0, at) + 1
        all_of.append((f"no barrier in line {line}, {name.split('(')[0][-60:]}", n, without_barrier(at), tests_of(name), True, ""))
    return all_of


# --- Mutants of the sources, where the emulator has another text ---

SOURCE_MUTANTS = [
    # name, file, what stands there, what the bug is, tests
    ("half of each asynchronous copy", "kernels/common/copy_async.cuh",
     'asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),\n               "r"(inside ? 16 : 0)',
     'asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),\n               "r"(inside ? 8 : 0)', TENSOR),
    ("copies are not waited for", "kernels/common/copy_async.cuh",
     'asm volatile("cp.async.wait_all;" ::: "memory");', 'asm volatile("" ::: "memory");', TENSOR),
    ("operands cut off in place of rounded", "kernels/common/tensor_core.cuh",
     'asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));', 'bits = __float_as_uint(x) & 0xffffe000u;', TENSOR),
    ("sums of tensor cores begin anew", "kernels/common/tensor_core.cuh",
     'const float (&b)[2]) {\n#ifdef __CUDACC__\n ', 'const float (&b)[2]) {\n#ifdef __CUDACC__\n  top[0] = top[1] = bottom[0] = bottom[1] = 0.0f;', TENSOR),
    ("units are cut off", "kernels/common/fixed_point.cuh",
     "return ScalarLanes::bits(ScalarLanes::fma(x, y, kToUnits));", "return kToUnitsBits + __float2int_rz(x * y);", KERNELS + ":" + ENGINE),
    ("a fused multiply-add rounds twice", "kernels/common/lanes.hpp", "return __fmaf_rn(a, b, c);", "return __fadd_rn(__fmul_rn(a, b), c);", KERNELS + ":" + RANDOM),
    ("a pair used undecided", "kernels/step/finish.cuh", "if (!tried.decided) {", "if (false) {", FINISH),
    ("a stalled step updated twice", "kernels/step/finish.cuh",
     "atomicAdd(&a.cursor->pending, 1u);\n    return;", "atomicAdd(&a.cursor->pending, 1u);", FINISH),
    ("a pair completed twice", "kernels/step/finish.cuh", "    atomicAdd(bits, 0u - bit);\n", "", FINISH),
    ("the next step started by the first block", "kernels/step/sample.cuh", "+ 1 != gridDim.x) return;", "!= 0) return;", FINISH),
    ("no fence before a block is counted", "kernels/step/sample.cuh", "  __threadfence();\n  if (atomicAdd", "  if (atomicAdd", FINISH),
    ("no fence after the last block is counted", "kernels/step/sample.cuh", "  __threadfence();\n  const std::uint64_t step", "  const std::uint64_t step", FINISH),
    ("steps go on after one that waits", "kernels/step/step_cursor.hpp", "return c.pending != 0 || c.oversized_batch != 0", "return c.oversized_batch != 0", FINISH),
    ("no wait for the sum", "kernels/common/dependent.cuh",
     'asm volatile("griddepcontrol.wait;" ::: "memory");', 'asm volatile("" ::: "memory");', ENGINE),
    ("a slab read before the sum has ended", "kernels/step/finish.cuh",
     "    if (!has_waited) {\n", "    if (!has_waited) {\n      shares[0][column].even = a.unfinished.sums.slabs[column];\n", ENGINE),
    ("a parameter written before the sum has ended", "kernels/step/finish.cuh",
     "    if (!has_waited) {\n", "    if (!has_waited) {\n      if (threadIdx.x == 0 && blockIdx.x == 0) *a.update.parameters += 0.0f;\n", ENGINE),
    ("the number of a thread along y", "kernels/fused/candidates.cuh", "mov.u32 %0, %%tid.x;", "mov.u32 %0, %%tid.y;", KERNELS + ":" + ENGINE),
    # Those that the emulator has, too: kernels that only trainings with targets, class weights or held-out rows launch.
    ("a Huber bound on the wrong side", "kernels/layers/loss_math.hpp", "r < -bound ? -bound : r", "r < -bound ? bound : r", TARGETS),
    ("the target of another row", "kernels/layers/loss.cuh", "a.targets[number_in_set(a.batch, a.examples, e)]", "a.targets[e]", TARGETS),
    ("a loss without its class's weight", "kernels/layers/loss.cuh", "logit_gradient[i] *= a.class_weights[a.label[e]];", ";", WEIGHTS),
    ("a clip factor without its class's weight", "kernels/contribution/clip.cuh", "      factors[g] *= weight;\n", "", WEIGHTS),
    ("a fused sum without class weights", "kernels/fused/dense_rows.cuh", "scale *= a.class_weights[a.labels[number_of(e)]];", ";", WEIGHTS),
    ("the weight of another row's class", "kernels/fused/dense_rows.cuh", "a.class_weights[a.labels[number_of(e)]]", "a.class_weights[a.labels[e]]", WEIGHTS),
    ("held-out rows are drawn", "kernels/step/sample.cuh", "drawn = drawn && index_of<true>(a, first + std::int64_t{16} * row) != kHeldOut;", ";", HOLD_OUT),
    ("another row than the one that is drawn", "kernels/step/sample.cuh", "a.index != nullptr ? a.index[i] : i", "i", HOLD_OUT),
    ("the step of an epoch that another row has", "kernels/step/sample.cuh", "of[i / 4].step[i % 4]", "of[i / 4].step[i % 4 ^ 1]", HOLD_OUT),
]


# Layouts of fused kernels (tests/kernels/fused_plan_test.cpp): name, file, what stands there, what the bug is.
LAYOUT_MUTANTS = [
    ("planes one example too short", "kernels/fused/plan.hpp", "return Plane{kExamples * stride, stride,", "return Plane{(kExamples - 1) * stride, stride,"),
    ("rows one example too short", "kernels/fused/plan.hpp", "round_up_to(kExamples * words * 4, kBanks)", "round_up_to((kExamples - 1) * words * 4, kBanks)"),
    ("examples too near each other", "kernels/fused/plan.hpp", "const int stride = round_up_to(bytes, kBanks);", "const int stride = bytes / kBanks * kBanks;"),
    ("a border too narrow", "kernels/fused/stages.hpp", "quotient_up(s.kernel, s.stride) - 1 : 0", "quotient_up(s.kernel, s.stride) - 2 : 0"),
    ("planes of an input too short", "kernels/fused/stages.hpp", "t.plane = round_up_to(used_by_input, 8);", "t.plane = used_by_input / 8 * 8;"),
    ("no room for zeros", "kernels/fused/stages.hpp", ": t.dy_zeros + 8;", ": t.dy_zeros;"),
    ("inputs replaced before the sum", "kernels/fused/plan.hpp", "p.hidden_in[0] = rows(kDense.input_pitch(), pooled, end);", "p.hidden_in[0] = rows(kDense.input_pitch(), pooled, kPhases.hidden_back());"),
    ("partial sums replaced before they are read", "kernels/fused/plan.hpp", "kPhases.hidden(), kPhases.head());", "kPhases.hidden(), kPhases.hidden());"),
    ("gradients replaced before they are read", "kernels/fused/plan.hpp", "kPhases.head(), kPhases.hidden_back());", "kPhases.head(), kPhases.head());"),
    ("halves of weights in one bank", "kernels/fused/stages.hpp", "(half ^ (c >> 2 & 1))", "half"),
    ("low parts over high ones", "kernels/fused/packed.hpp", "kLow = kSplitBytes;", "kLow = kSplitBytes - kChunk;"),
    ("the last layer a row too short", "kernels/fused/packed.hpp", "kLast + 4 * kDense.outputs * kDense.last_pitch()", "kLast + 4 * (kDense.outputs - 1) * kDense.last_pitch()"),
    ("rows and columns of pixels exchanged", "kernels/fused/packed.hpp", "is_pixel ? s.dy_place(y, x) : zero", "is_pixel ? s.dy_place(x, y) : zero"),
    ("all chunks of a tap in one plane", "kernels/fused/stages.hpp", "return chunk * plane + y / stride * line", "return y / stride * line"),
]


# Where the kernels stand that tests launch: their own, and the engine's (tests/kernels/compiled_*.hpp).
KERNEL_SOURCES = ("gpu/cuda_kernels_gpu_test.cu", "gpu/random_gpu.cu",
                  "device/cuda/fused.cu", "device/cuda/fused_dense.cu", "device/cuda/layer_wise.cu", "device/cuda/products.cu",
                  "device/cuda/step.cu")

# Not to be found: what is compared bit for bit is not made by float32 multiply-adds.
WITHIN_TOLERANCES = {"a fused multiply-add rounds twice"}


def command_of(source):
    """The directory and the words of the call of nvcc that compiles a .cu."""
    commands = json.loads((BUILD / "compile_commands.json").read_text())
    command = next(c for c in commands if c["file"].endswith(source) and "nvcc" in c["command"])
    words = shlex.split(command["command"])
    return command["directory"], words[next(i for i, w in enumerate(words) if w.endswith("nvcc")):]


def reads(source, file):
    """Whether a .cu includes a file, as the build has found."""
    directory, words = command_of(source)
    done = subprocess.run(["ninja", "-t", "deps", words[words.index("-o") + 1]], cwd=directory, capture_output=True, text=True, check=True)
    return str(ROOT / file) in done.stdout.split()


def changed_copy(file, before, after):
    """A copy of the sources with one file changed."""
    sources = FOLDER / "src"
    shutil.rmtree(sources, ignore_errors=True)
    for name in ("kernels", "models", "privacy", "runtime", "tests"):
        shutil.copytree(ROOT / name, sources / name)
    text = (ROOT / file).read_text()
    if text.count(before) != 1:
        sys.exit(f"mutants.py: expected once in {file}, found {text.count(before)} times: {before}")
    (sources / file).write_text(text.replace(before, after))
    return sources


def compile_ptx(source, change, to):
    """The PTX of a .cu with one file of kernels/ changed."""
    sources = changed_copy(*change)
    directory, words = command_of(source)
    kept, skip = [], False
    for w in words:
        if skip or w in ("-c", "-x", "cu", "-o") or w.startswith(("--generate-code", "-gencode", "-arch", "-MD", "-MT", "-MF")):
            skip = w in ("-o", "-MT", "-MF", "-x")
            continue
        kept.append(w.replace(str(ROOT), str(sources)) if w.startswith(("-I" + str(ROOT), str(ROOT))) and "/build" not in w else w)
    architecture = 90 if any("arch=compute_90" in w for w in words) else 80
    subprocess.run([*kept, "-ptx", f"-arch=compute_{architecture}", "-o", str(to)], check=True, cwd=directory)


def emulator_reads(sources):
    """Whether the emulated kernels' text is another one in the copy of the sources that compile_ptx left."""
    commands = json.loads((BUILD / "compile_commands.json").read_text())
    tests = ("tests/kernels/cuda_kernels_test.cpp", "tests/kernels/cuda_fused_test.cpp")
    for command in commands:
        file = str(pathlib.Path(command["file"]).relative_to(ROOT)) if command["file"].startswith(str(ROOT)) else ""
        if not ("cudp_emulated_cuda.dir" in command["command"] or file in tests and "cudp_tests.dir" in command["command"]):
            continue
        words = shlex.split(command["command"])
        words = words[next(i for i, w in enumerate(words) if re.search(r"(\+\+|cxx)[-0-9]*$", w)):words.index("-o")]
        if "-include" in words:  # a precompiled header
            del words[words.index("-include"):words.index("-include") + 2]
        texts = []
        for root in (ROOT, sources):
            moved = [w.replace(str(ROOT), str(root)) for w in words if not w.startswith("-fmacro-prefix-map")]
            read = root / file
            if pathlib.Path(command["file"]).is_relative_to(BUILD):  # it includes several sources
                read = FOLDER / "unity.cpp"
                read.write_text(pathlib.Path(command["file"]).read_text().replace(f"{ROOT}/", f"{root}/"))
            done = subprocess.run([*moved, "-x", "c++", "-E", "-P", str(read)], check=True, cwd=command["directory"], capture_output=True, text=True)
            texts.append(done.stdout.replace(str(root), ""))
        if texts[0] != texts[1]:
            return True
    return False


def layout_verdict(change):
    """What the tests of layouts say of changed sources: whether it is an error, and its first line."""
    sources = changed_copy(*change)
    commands = json.loads((BUILD / "compile_commands.json").read_text())
    words = shlex.split(next(c["command"] for c in commands if c["file"].endswith("tests/kernels/fused_plan_test.cpp")))
    words = words[next(i for i, w in enumerate(words) if re.search(r"(\+\+|cxx)[-0-9]*$", w)):words.index("-o")]
    if "-include" in words:  # a precompiled header
        del words[words.index("-include"):words.index("-include") + 2]
    words = [w.replace(str(ROOT), str(sources)) for w in words] + ["-w", "-O0"]
    program = FOLDER / "layouts"
    program.unlink(missing_ok=True)
    made = subprocess.run([*words, str(sources / "tests/kernels/fused_plan_test.cpp"), "-o", str(program), "-lgtest_main", "-lgtest", "-lpthread"],
                          capture_output=True, text=True)
    if made.returncode != 0:
        return True, "not compiled: " + (re.findall(r"error: ([^\n]*)", made.stderr) or [made.stderr[-110:]])[0][:110]
    done = subprocess.run([program, "--gtest_brief=1", "--gtest_fail_fast"], capture_output=True, text=True)
    return done.returncode != 0, (re.findall(r"\[  FAILED  \] ([^\s,]+)", done.stdout) or [""])[0]


# --- Running them ---

def run(replaced, tests):
    """Exit code, the test, seconds and what was said first. With two seeds: of a kernel that two modules
    have, a stream launches one's or the other's, by its number and the seed."""
    first = run_once(replaced, tests, 1)
    return first if first[0] != 0 else run_once(replaced, tests, 2)


def run_once(replaced, tests, seed):
    environment = dict(os.environ, CUDP_PTX_REPLACE=str(replaced), CUDP_PTX_SEED=str(seed))
    began = time.time()
    try:
        done = subprocess.run([TESTS, "--gtest_brief=1", "--gtest_fail_fast", "--gtest_filter=" + tests + "-*LargeImages*"], env=environment,
                              capture_output=True, text=True, errors="replace", timeout=900)
        code, out = done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired as e:
        code, out = -1, (e.stdout or b"").decode(errors="replace") + "\nptx: FAULT: no end within 900 s"
    said = re.search(r"ptx: (?:FAULT|refused|note): ([^\n]*)", out)
    failed = (re.findall(r"\[  FAILED  \] ([^\s,]+)", out) or [""])[0]
    words = said.group(1)[:110] if said else "wrong numbers alone" if failed else ""
    return code, failed, time.time() - began, words


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    original, replaced = FOLDER / "original", FOLDER / "replaced"
    original.mkdir(parents=True)
    subprocess.run([TESTS, "--gtest_list_tests"], env=dict(os.environ, CUDP_PTX_SAVE=str(original)), check=True, stdout=subprocess.DEVNULL)
    texts = {p.stem: p.read_text() for p in original.glob("*.ptx")}
    wanted = sys.argv[2:]
    jobs = [("no change: all tests pass", None, None, KERNELS, False, "")] + ptx_mutants(texts, wanted)
    wrong = found = 0
    _, file, text, _ = LAYOUT_MUTANTS[0]
    for name, *change in [("no change: layouts are as they should be", file, text, text)] + LAYOUT_MUTANTS:
        expected = change[1] != change[2]
        if wanted and expected and not any(w in name for w in wanted):
            continue
        caught, words = layout_verdict(change)
        found += caught
        wrong += caught != expected
        verdict = ("found      " if expected else "FOUND      ") if caught else "NOT FOUND  " if expected else "as expected"
        print(f"{verdict} {name}: {words}", flush=True)
    for name, module, change, tests, expected, why in jobs + [(m[0], None, m, m[4], m[0] not in WITHIN_TOLERANCES, "") for m in SOURCE_MUTANTS]:
        if wanted and not any(w in name for w in wanted):
            continue
        shutil.rmtree(replaced, ignore_errors=True)
        replaced.mkdir()
        said = ""
        if isinstance(change, tuple):
            for source in (of for of in KERNEL_SOURCES if reads(of, change[1])):
                made = FOLDER / "made.ptx"
                compile_ptx(source, change[1:4], made)
                entries = set(re.findall(r"\.entry ([\w$]+)", made.read_text()))
                module = max(texts, key=lambda n: len(entries & set(re.findall(r"\.entry ([\w$]+)", texts[n]))) if is_ours(texts[n]) else -1)
                shutil.move(made, replaced / f"{module}.ptx")
            said = "; the emulator runs it too" if emulator_reads(FOLDER / "src") else "; not in what the emulator runs"
        elif change is not None:
            mutant = change(texts[module])
            if mutant == texts[module]:
                sys.exit(f"mutants.py: {name} changes nothing")
            (replaced / f"{module}.ptx").write_text(mutant)
        code, failed, seconds, words = run(replaced, tests)
        caught = code != 0
        found += caught
        wrong += caught != expected
        verdict = ("found      " if expected else "FOUND      ") if caught else "NOT FOUND  " if expected else "as expected"
        print(f"{verdict} {name}: {failed} ({seconds:.0f} s) {words}{said}{why}", flush=True)
    print(f"{found} found; {wrong} otherwise than expected")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
