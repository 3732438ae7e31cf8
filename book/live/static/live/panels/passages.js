/** Lines of plays that the models did not see in training: A Midsummer Night's Dream and Richard II. */

export const LINES = `\
If we shadows have offended,
Think but this, and all is mended,
That you have but slumber'd here
While these visions did appear.
Gentles, do not reprehend:
if you pardon, we will mend:
I know a bank where the wild thyme blows,
Where oxlips and the nodding violet grows,
With sweet musk-roses and with eglantine:
There sleeps Titania sometime of the night,
Lull'd in these flowers with dances and delight;
This royal throne of kings, this scepter'd isle,
This earth of majesty, this seat of Mars,
This fortress built by Nature for herself
This happy breed of men, this little world,
This precious stone set in the silver sea,
Which serves it in the office of a wall,
Or as a moat defensive to a house,`.split("\n");
