"""The methods that personalise: what they are called, how they are built, and how they learn."""

from vitolab.methods.finding import build as build
from vitolab.methods.finding import by_training as by_training
from vitolab.methods.finding import check_agents as check_agents
from vitolab.methods.finding import check_installed as check_installed
from vitolab.methods.finding import find as find
from vitolab.methods.finding import is_agent as is_agent
from vitolab.methods.finding import label as label
from vitolab.methods.finding import learn as learn
from vitolab.methods.finding import learns_states as learns_states
from vitolab.methods.finding import n_states_used as n_states_used
from vitolab.methods.finding import references as references
from vitolab.methods.finding import title as title
from vitolab.methods.table import AGENTS as AGENTS
from vitolab.methods.table import CONTINUOUS_AGENT as CONTINUOUS_AGENT
from vitolab.methods.table import METHODS as METHODS
from vitolab.methods.table import PAPER as PAPER
from vitolab.methods.table import REFERENCES as REFERENCES
from vitolab.methods.table import Method as Method
from vitolab.methods.training import CONTINUOUS as CONTINUOUS
from vitolab.methods.training import EPISODE as EPISODE
from vitolab.methods.training import HINDSIGHT as HINDSIGHT
from vitolab.methods.training import HINDSIGHT_REPLAYS as HINDSIGHT_REPLAYS
from vitolab.methods.training import NEAREST as NEAREST
from vitolab.methods.training import POLICY as POLICY
from vitolab.methods.training import Training as Training
from vitolab.settings import Settings as Settings
