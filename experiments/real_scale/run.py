"""Train a model at real scale: with several processes, on a GPU, in less memory, on texts of one's own.

    .venv/bin/python -m experiments.real_scale.run RUN.toml FOLDER
    .venv/bin/torchrun --nproc-per-node 2 -m experiments.real_scale.run RUN.toml FOLDER

It stops, resumes and records as `experiments.harness.long_run` does.
"""

from experiments.harness.long_run import main
from experiments.real_scale.training import ScaledTraining

if __name__ == "__main__":
    main(ScaledTraining)
